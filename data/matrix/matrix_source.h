// What the readers of data/matrix/ share: byte ranges of files with checked bounds, numbers of other programs' types,
// and which rows a part of a recording takes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/files/files.h"
#include "data/matrix_file.h"

namespace tactus::matrix {

/// A byte range of an open file. Its bounds were checked against the file's real size, so that its size justifies
/// allocations. Reading is thread-safe.
class FileRange {
 public:
  /// offset -1: from the file's first byte; bytes -1: to its end. Messages begin with `shown`. DataError when the file
  /// cannot be opened, is no regular file, or ends before the range does.
  FileRange(const std::string& path, int64_t offset, int64_t bytes, std::string shown);

  int64_t size() const { return size_; }
  const std::string& shown() const { return shown_; }
  /// Bytes [at, at + count) of the range; DataError when it ends before.
  void read(void* to, int64_t count, int64_t at) const;
  /// Throws DataError "SHOWN: what".
  [[noreturn]] void fail(const std::string& what) const;
  /// Throws DataError "SHOWN: byte N of the file: what", with `at` counted from the range's first byte.
  [[noreturn]] void fail_at(int64_t at, const std::string& what) const;

 private:
  std::string path_, shown_;
  FileDescriptor file_;
  int64_t begin_ = 0, size_ = 0;
};

/// Reads a range byte by byte, a block at a time.
class ByteCursor {
 public:
  explicit ByteCursor(const FileRange& range) : range_(&range) {}
  /// The next byte, or -1 at the end of the range.
  int peek();
  /// Takes the next byte; -1 at the end.
  int get();
  /// Takes `count` bytes; DataError when the range ends before, naming `what` was being read.
  void take(unsigned char* to, int64_t count, const char* what);
  int64_t at() const { return at_; }
  void seek(int64_t at) { at_ = at; }

 private:
  static constexpr int64_t kBlock = 4096;
  const FileRange* range_;
  int64_t at_ = 0, block_at_ = 0, block_size_ = 0;
  unsigned char block_[kBlock];
};

/// Types of stored numbers.
enum class Number { f16, f32, f64, i8, i16, i32, u8 };
int64_t size_of(Number type);
/// Converts `count` adjacent numbers to to[0], to[stride], ... Numbers beyond the range of float become infinite.
void to_floats(const unsigned char* from, Number type, bool big_endian, int64_t count, float* to, int64_t stride = 1);
/// Reads and converts `count` adjacent numbers from byte `at` of the range.
void read_floats(const FileRange& range, int64_t at, Number type, bool big_endian, int64_t count, float* to);

/// A little-endian integer or float.
template <class T>
T little_endian(const unsigned char* bytes) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  static_assert(sizeof(T) == sizeof(Bits));
  Bits bits = 0;
  for (size_t i = 0; i < sizeof(T); ++i) bits = static_cast<Bits>(bits | static_cast<Bits>(bytes[i]) << (8 * i));
  return std::bit_cast<T>(bits);
}

/// a * b for a, b >= 0, or -1 where that is beyond int64_t or either is -1 already.
int64_t checked_product(int64_t a, int64_t b);
/// Text as it can stand in one line of a message: other bytes than printable ASCII as \xNN, at most 60 bytes.
std::string printable(std::string_view text);

/// A part of a recording in seconds.
struct PartOfTime {
  double start_seconds = 0, duration_seconds = -1;  ///< -1: to the end
  double frames_per_second = 100;
  /// Rows [first, second) of `rows`: both ends rounded to the nearest row, the second clipped. DataError beginning with
  /// `shown` where the part begins beyond the last row or holds no row.
  std::pair<int64_t, int64_t> rows_of(int64_t rows, const std::string& shown) const;
};

/// Rows of a matrix, the first of which is row `first_row` of the file's.
struct MatrixPart {
  FeatureMatrix matrix;
  int64_t first_row = 0;
};

}  // namespace tactus::matrix
