// Lines of text files, read strictly: text that a model trains on must not be damaged silently.
//
// Only '\n' ends a line (a form feed or U+2028 inside a sentence does not); "\r\n" is tolerated; a byte order mark is
// dropped; a last line without '\n' counts. A NUL byte, invalid UTF-8 or a line over 1 MiB is a DataError with file and
// line; invalid UTF-8 may be replaced instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/files.h"

namespace tactus {

constexpr int64_t kMaxLineBytes = int64_t{1} << 20;

enum class InvalidUtf8 { error, replace };
/// "error" or "replace"; ConfigError otherwise.
InvalidUtf8 invalid_utf8_from_string(const std::string& name);

/// Reads one line after the other; memory stays at one block and one line.
class LineReader {
 public:
  explicit LineReader(const std::string& path, InvalidUtf8 policy = InvalidUtf8::error);
  /// `policy`: as invalid_utf8_from_string reads it.
  LineReader(const std::string& path, const std::string& policy) : LineReader(path, invalid_utf8_from_string(policy)) {}
  /// False at the end of the file.
  bool next(std::string& line);
  /// Bytes that were no UTF-8 and became U+FFFD, one for each maximal part of a sequence (Unicode 15, section 3.9).
  int64_t replaced_bytes() const { return replaced_bytes_; }
  /// Number of the line read last, from 1.
  int64_t number() const { return number_; }
  /// "file:line" of the line read last.
  std::string where() const { return path_ + ":" + std::to_string(number_); }

 private:
  bool fill();
  void check(std::string& line);
  [[noreturn]] void too_long() const;

  std::string path_;
  FileDescriptor file_;
  InvalidUtf8 policy_;
  std::string block_;
  size_t position_ = 0;
  int64_t number_ = 0, replaced_bytes_ = 0;
};

std::vector<std::string> read_lines(const std::string& path);

/// Offset of the first byte that is not well-formed UTF-8 (overlong forms, surrogates and values above U+10FFFF
/// included), or -1.
int64_t first_invalid_utf8(std::string_view text);
/// `text` with each maximal part that is no UTF-8 replaced by U+FFFD; adds their bytes to `replaced`.
std::string with_invalid_utf8_replaced(std::string_view text, int64_t& replaced);
/// Lines of a file, or -1 where it is larger than `most_bytes`: for progress bars.
int64_t count_lines(const std::string& path, int64_t most_bytes = int64_t{1} << 28);
/// True when there is nothing but ASCII white space.
bool is_blank(std::string_view text);
/// Splits at every tab; k tabs give k + 1 fields.
std::vector<std::string_view> split_tabs(std::string_view line);

}  // namespace tactus
