// The bytes of one sound: a file, or a range inside a larger one.
#pragma once

#include <cstdint>
#include <string>

#include "core/files/files.h"
#include "data/item.h"

namespace tactus {

/// Open for reading, from any place; positions count from the beginning of the range.
class ByteRange {
 public:
  /// DataError when the file cannot be opened, is a folder or a pipe, or ends before the range does.
  explicit ByteRange(const MediaRef& media);
  /// What errors begin with: the reference in words.
  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  /// Takes the bytes from `size` on for another's.
  void end_at(int64_t size) { size_ = size; }
  /// Reads up to `count` bytes at `at`; fewer at the end. DataError when the system fails.
  int64_t read(void* to, int64_t count, int64_t at) const;
  /// The same, and "cut short" where there are fewer; `what` is being read.
  void read_all(void* to, int64_t count, int64_t at, const char* what) const;

 private:
  std::string name_;
  FileDescriptor file_;
  int64_t begin_ = 0, size_ = 0;
};

}  // namespace tactus
