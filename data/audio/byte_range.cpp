#include "data/audio/byte_range.h"

#include <sys/stat.h>

#include <algorithm>

#include "core/error.h"

namespace tactus {

ByteRange::ByteRange(const MediaRef& media)
    : name_(media.to_string()), file_(FileDescriptor::open_for_reading(media.path)) {
  struct stat info {};
  if (fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) throw DataError(name_ + ": is not a regular file");
  begin_ = std::max<int64_t>(media.offset, 0);
  size_ = media.bytes >= 0 ? media.bytes : info.st_size - begin_;
  if (begin_ > info.st_size || size_ > info.st_size - begin_) {
    throw DataError(name_ + ": the range ends beyond the " + std::to_string(info.st_size) + " bytes of the file");
  }
}

int64_t ByteRange::read(void* to, int64_t count, int64_t offset) const {
  count = std::min(count, size_ - offset);
  if (count <= 0 || offset < 0) return 0;
  read_exactly(file_.get(), to, count, begin_ + offset, name_);
  return count;
}

}  // namespace tactus
