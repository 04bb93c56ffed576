// Lines of text files, read strictly: text that a model trains on must not be damaged silently.
//
// Only '\n' ends a line (a form feed or U+2028 inside a sentence does not); "\r\n" is tolerated; a byte order mark is
// dropped; a last line without '\n' counts. A NUL byte, invalid UTF-8 or a line over 1 MiB is a DataError with file and
// line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"

namespace tactus {

constexpr int64_t kMaxLineBytes = int64_t{1} << 20;

/// Reads one line after the other; memory stays at one block and one line.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  /// False at the end of the file.
  bool next(std::string& line);
  /// Number of the line read last, from 1.
  int64_t number() const { return number_; }
  /// "file:line" of the line read last.
  std::string where() const { return path_ + ":" + std::to_string(number_); }

 private:
  bool fill();
  void check(const std::string& line) const;

  std::string path_;
  FileDescriptor file_;
  std::string block_;
  size_t position_ = 0;
  int64_t number_ = 0;
};

std::vector<std::string> read_lines(const std::string& path);

/// Offset of the first byte that is not well-formed UTF-8 (overlong forms, surrogates and values above U+10FFFF
/// included), or -1.
int64_t first_invalid_utf8(std::string_view text);
/// True when there is nothing but ASCII white space.
bool is_blank(std::string_view text);
/// Splits at every tab; k tabs give k + 1 fields.
std::vector<std::string_view> split_tabs(std::string_view line);

}  // namespace tactus
