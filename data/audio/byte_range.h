// A part of a file that is a sound file by itself: the whole of it, or a stored member of an archive.
#pragma once

#include <cstdint>
#include <string>

#include "core/files.h"
#include "data/item.h"

namespace tactus {

class ByteRange {
 public:
  /// DataError when the file cannot be opened or is shorter than the range.
  explicit ByteRange(const MediaRef& media);
  int64_t size() const { return size_; }
  /// For messages.
  const std::string& name() const { return name_; }
  /// Reads at most `count` bytes at `offset` of the range; fewer at its end. DataError when the system cannot read.
  int64_t read(void* to, int64_t count, int64_t offset) const;

 private:
  std::string name_;
  FileDescriptor file_;
  int64_t begin_ = 0, size_ = 0;
};

}  // namespace tactus
