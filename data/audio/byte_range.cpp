#include "data/audio/byte_range.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tactus {

ByteRange::ByteRange(const MediaRef& media) : name_(media.to_string()) {
  struct stat info {};
  // Before it is opened: opening a pipe waits for a writer.
  if (stat(media.path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    throw DataError(media.path + ": is not a file, expected a sound file");
  file_ = FileDescriptor::open_for_reading(media.path);
  if (fstat(file_.get(), &info) != 0) throw DataError(media.path + ": " + std::strerror(errno));
  begin_ = std::max<int64_t>(media.offset, 0);
  if (begin_ > info.st_size || media.bytes > info.st_size - begin_) {
    throw DataError(name_ + ": the file has only " + std::to_string(info.st_size) +
                    " bytes; was it replaced or cut short?");
  }
  size_ = media.bytes >= 0 ? media.bytes : info.st_size - begin_;
}

int64_t ByteRange::read(void* to, int64_t count, int64_t at) const {
  count = at < 0 ? 0 : std::min(count, size_ - at);
  int64_t got = 0;
  while (got < count) {
    const ssize_t n = pread(file_.get(), static_cast<char*>(to) + got, static_cast<size_t>(count - got),
                            static_cast<off_t>(begin_ + at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DataError(name_ + ": " + std::strerror(errno));
    if (n == 0) break;
    got += n;
  }
  return got;
}

void ByteRange::read_all(void* to, int64_t count, int64_t at, const char* what) const {
  if (read(to, count, at) < count) {
    throw DataError(name_ + ": cut short: it ends in " + what + " at byte " + std::to_string(at) + "; get it again");
  }
}

}  // namespace tactus
