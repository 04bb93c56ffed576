// Files that are either whole or absent: atomic replacement, and small text files.
//
// Errors name the path and the system's reason. Writing fails with Error (a full disk is a failure at run time),
// reading with DataError.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tactus {

/// A file under construction. It is written under a temporary name in the folder of `path`; commit() flushes it to
/// disk, renames it and flushes the folder. Without commit() the destructor removes it. One process at a time may write
/// one path: what a killed process left under the temporary name is overwritten by the next.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  /// Name to write to for libraries that open files themselves; they must have closed it before commit().
  const std::string& temporary() const { return temporary_; }
  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  std::string path_, temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

std::string read_text_file(const std::string& path);
void write_text_atomic(const std::string& path, std::string_view text);

/// Reads exactly `count` bytes at `offset`, from any thread. DataError naming `path` when the file ends before.
void read_exactly(int fd, void* to, int64_t count, int64_t offset, const std::string& path);
/// Writes all bytes, or throws Error naming `path`.
void write_exactly(int fd, const void* from, size_t count, const std::string& path);
/// The same at a place of the file, from any thread.
void write_exactly_at(int fd, const void* from, int64_t count, int64_t offset, const std::string& path);

class FileDescriptor;

/// A whole file mapped for reading. Files are replaced by renaming, never rewritten, so that a mapping stays whole.
class MappedFile {
 public:
  /// DataError when it cannot be mapped.
  MappedFile(const FileDescriptor& file, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  const uint8_t* data_ = nullptr;
  int64_t size_ = 0;
};

/// A file descriptor that closes itself.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& o) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }
  /// DataError when the file cannot be opened.
  static FileDescriptor open_for_reading(const std::string& path);
  /// Error when the file cannot be opened to change bytes inside it.
  static FileDescriptor open_for_writing(const std::string& path);
  /// A file without a name in the folder of `path`, for spooling; it vanishes with the process, whatever ends it.
  static FileDescriptor anonymous_beside(const std::string& path);

 private:
  int fd_ = -1;
};

/// Keeps other processes from working in a folder as long as it lives; the lock vanishes with the process, whatever
/// ends it, and leaves no file. Where folders cannot be read or locked there is no protection.
class FolderLock {
 public:
  /// Error when there is no such folder, or it is locked already (`user` says by what).
  FolderLock(const std::string& folder, const std::string& user);

 private:
  FileDescriptor folder_;
};

}  // namespace tactus
