#include "core/files/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace tactus {
namespace {

std::string reason() { return std::generic_category().message(errno); }

std::string folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void flush_to_disk(int fd, const std::string& path) {
  // Pipes and some network file systems cannot be flushed; that is no loss of data.
  if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) throw Error(path + ": cannot flush to disk: " + reason());
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& o) noexcept {
  std::swap(fd_, o.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor FileDescriptor::open_for_reading(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw DataError(path + ": cannot open: " + reason());
  struct stat info {};
  if (fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode)) throw DataError(path + ": is a folder, expected a file");
  return file;
}

FileDescriptor FileDescriptor::open_for_writing(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) throw Error(path + ": cannot open for writing: " + reason());
  return file;
}

FileDescriptor FileDescriptor::anonymous_beside(const std::string& path) {
  std::string name = path + ".spool-XXXXXX";
  FileDescriptor file(mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) throw Error(path + ": cannot create a temporary file beside it: " + reason());
  unlink(name.c_str());
  return file;
}

void read_exactly(int fd, void* to, int64_t count, int64_t offset, const std::string& path) {
  char* cursor = static_cast<char*>(to);
  while (count > 0) {
    ssize_t got = pread(fd, cursor, static_cast<size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(path + ": cannot read at byte " + std::to_string(offset) + ": " + reason());
    if (got == 0) {
      throw DataError(path + ": file ends at byte " + std::to_string(offset) + ", " + std::to_string(count) +
                      " more bytes were expected; it was cut short");
    }
    cursor += got, offset += got, count -= got;
  }
}

void write_exactly(int fd, const void* from, size_t count, const std::string& path) {
  const char* cursor = static_cast<const char*>(from);
  while (count > 0) {
    ssize_t put = ::write(fd, cursor, count);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw Error(path + ": cannot write: " + reason());
    cursor += put, count -= static_cast<size_t>(put);
  }
}

void write_exactly_at(int fd, const void* from, int64_t count, int64_t offset, const std::string& path) {
  const char* cursor = static_cast<const char*>(from);
  while (count > 0) {
    ssize_t put = pwrite(fd, cursor, static_cast<size_t>(count), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw Error(path + ": cannot write: " + reason());
    cursor += put, offset += put, count -= put;
  }
}

MappedFile::MappedFile(const FileDescriptor& file, const std::string& path) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) throw DataError(path + ": cannot read its size: " + reason());
  size_ = info.st_size;
  if (size_ == 0) return;
  void* at = mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) throw DataError(path + ": cannot be mapped into memory: " + reason());
  data_ = static_cast<const uint8_t*>(at);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(size_));
}

FolderLock::FolderLock(const std::string& folder, const std::string& user) {
  folder_ = FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) throw Error(folder + ": cannot open: " + reason());
  if (folder_.get() >= 0 && flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(folder + ": another " + user +
                " is working in this folder; wait until it has ended, or choose another");
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), temporary_(path + ".tmp") {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw Error(path_ + ": cannot create: " + reason());
}

AtomicFile::~AtomicFile() {
  if (!committed_) {
    // A library that failed to close the file may still hold it open; emptying it gives the disk space back all the
    // same.
    [[maybe_unused]] int ignored = ftruncate(fd_, 0);
    unlink(temporary_.c_str());
  }
  if (fd_ >= 0) ::close(fd_);
}

void AtomicFile::write(const void* bytes, size_t count) { write_exactly(fd_, bytes, count, path_); }

void AtomicFile::commit() {
  flush_to_disk(fd_, path_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) throw Error(path_ + ": cannot put in place: " + reason());
  committed_ = true;
  // Without this the new name itself could be lost in a power failure.
  FileDescriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) flush_to_disk(folder.get(), folder_of(path_));
}

std::string read_text_file(const std::string& path) {
  FileDescriptor file = FileDescriptor::open_for_reading(path);
  std::string text;
  char block[65536];
  for (;;) {
    ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(path + ": cannot read: " + reason());
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
  }
}

void write_text_atomic(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace tactus
