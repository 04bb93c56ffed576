#include "data/matrix/matrix_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/half.h"

namespace tactus::matrix {
namespace {

template <class Bits>
Bits swapped(Bits bits) {
  Bits result = 0;
  for (size_t i = 0; i < sizeof(Bits); ++i)
    result = static_cast<Bits>(result | static_cast<Bits>(bits >> (8 * i) & 0xff) << (8 * (sizeof(Bits) - 1 - i)));
  return result;
}

template <class Bits, class Convert>
void convert(const unsigned char* from, bool swap, int64_t count, float* to, int64_t stride, Convert value_of) {
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, from + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    to[i * stride] = static_cast<float>(value_of(swap ? swapped(bits) : bits));
  }
}

}  // namespace

FileRange::FileRange(const std::string& path, int64_t offset, int64_t bytes, std::string shown)
    : path_(path), shown_(std::move(shown)) {
  // Opening a pipe would wait for whoever writes to it.
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    fail("is no regular file; copy its content to one");
  file_ = FileDescriptor::open_for_reading(path);
  if (fstat(file_.get(), &info) != 0) fail("cannot read its size: " + std::generic_category().message(errno));
  const int64_t file_size = info.st_size;
  begin_ = std::max<int64_t>(offset, 0);
  if (begin_ > file_size || bytes > file_size - begin_) {
    fail((bytes >= 0 ? std::to_string(bytes) + " bytes were expected at" : "data was expected at") + " byte " +
         std::to_string(begin_) + ", the file has only " + std::to_string(file_size) +
         " bytes; it was cut short or is another file than the offset was taken from");
  }
  size_ = bytes >= 0 ? bytes : file_size - begin_;
}

void FileRange::read(void* to, int64_t count, int64_t at) const {
  if (at < 0 || count < 0 || at > size_ || count > size_ - at)
    fail_at(size_, "the data ends, " + std::to_string(count) + " bytes were expected at " + std::to_string(at));
  read_exactly(file_.get(), to, count, begin_ + at, path_);
}

void FileRange::fail(const std::string& what) const { throw DataError(shown_ + ": " + what); }

void FileRange::fail_at(int64_t at, const std::string& what) const {
  fail("byte " + std::to_string(begin_ + at) + " of the file: " + what);
}

int ByteCursor::peek() {
  if (at_ >= range_->size()) return -1;
  if (at_ < block_at_ || at_ >= block_at_ + block_size_) {
    block_size_ = std::min(kBlock, range_->size() - at_);
    block_at_ = at_;
    range_->read(block_, block_size_, at_);
  }
  return block_[at_ - block_at_];
}

int ByteCursor::get() {
  int byte = peek();
  if (byte >= 0) ++at_;
  return byte;
}

void ByteCursor::take(unsigned char* to, int64_t count, const char* what) {
  if (count > range_->size() - at_)
    range_->fail_at(range_->size(), "the data ends inside " + std::string(what) + "; it was cut short");
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<unsigned char>(get());
}

int64_t size_of(Number type) {
  switch (type) {
    case Number::i8:
    case Number::u8:
      return 1;
    case Number::f16:
    case Number::i16:
      return 2;
    case Number::f32:
    case Number::i32:
      return 4;
    default:
      return 8;
  }
}

void to_floats(const unsigned char* from, Number type, bool big_endian, int64_t count, float* to, int64_t stride) {
  const bool swap = big_endian != (std::endian::native == std::endian::big);
  switch (type) {
    case Number::f16:
      return convert<uint16_t>(from, swap, count, to, stride, float_from_half);
    case Number::f32:
      return convert<uint32_t>(from, swap, count, to, stride, [](uint32_t b) { return std::bit_cast<float>(b); });
    case Number::f64:
      return convert<uint64_t>(from, swap, count, to, stride, [](uint64_t b) { return std::bit_cast<double>(b); });
    case Number::i8:
      return convert<uint8_t>(from, swap, count, to, stride, [](uint8_t b) { return static_cast<int8_t>(b); });
    case Number::i16:
      return convert<uint16_t>(from, swap, count, to, stride, [](uint16_t b) { return static_cast<int16_t>(b); });
    case Number::i32:
      return convert<uint32_t>(from, swap, count, to, stride, [](uint32_t b) { return static_cast<int32_t>(b); });
    case Number::u8:
      return convert<uint8_t>(from, swap, count, to, stride, [](uint8_t b) { return b; });
  }
}

void read_floats(const FileRange& range, int64_t at, Number type, bool big_endian, int64_t count, float* to) {
  if (type == Number::f32 && big_endian == (std::endian::native == std::endian::big)) {
    range.read(to, count * 4, at);
    return;
  }
  constexpr int64_t kBlockBytes = 16384;
  unsigned char block[kBlockBytes];
  const int64_t size = size_of(type), most = kBlockBytes / size;
  for (int64_t done = 0; done < count; done += most) {
    const int64_t n = std::min(most, count - done);
    range.read(block, n * size, at + done * size);
    to_floats(block, type, big_endian, n, to + done);
  }
}

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string result;
  for (unsigned char c : text.substr(0, kMost)) {
    char code[8];
    std::snprintf(code, sizeof code, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
    result += code;
  }
  return text.size() > kMost ? result + "..." : result;
}

std::pair<int64_t, int64_t> PartOfTime::rows_of(int64_t rows, const std::string& shown) const {
  if (!(frames_per_second > 0) || !std::isfinite(frames_per_second))
    throw ConfigError(shown + ": frames per second is " + std::to_string(frames_per_second) + ", expected more than 0");
  if (!(start_seconds >= 0) || !std::isfinite(start_seconds) || std::isnan(duration_seconds)) {
    throw DataError(shown + ": start " + std::to_string(start_seconds) + " s and duration " +
                    std::to_string(duration_seconds) + " s are no part of a recording");
  }
  auto row_at = [&](double seconds) {
    double row = std::round(seconds * frames_per_second);
    return row >= static_cast<double>(rows) ? rows : static_cast<int64_t>(row);
  };
  const int64_t begin = row_at(start_seconds);
  const int64_t end = duration_seconds < 0 ? rows : row_at(start_seconds + duration_seconds);
  char rate[96];
  std::snprintf(rate, sizeof rate, " rows at %g rows per second, which end at %g s", frames_per_second,
                static_cast<double>(rows) / frames_per_second);
  if (begin >= rows) throw DataError(shown + ": the part begins beyond the matrix of " + std::to_string(rows) + rate);
  if (end <= begin) throw DataError(shown + ": the part holds no row of the " + std::to_string(rows) + rate);
  return {begin, end};
}

}  // namespace tactus::matrix
