#include "data/lra/idx.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "core/error.h"
#include "core/files/files.h"

namespace tactus {
namespace {

constexpr int kUnsignedBytes = 8;

std::string plain_or_gz(const std::string& path) {
  std::error_code ignored;
  const bool packed = !std::filesystem::exists(path, ignored) && std::filesystem::exists(path + ".gz", ignored);
  return packed ? path + ".gz" : path;
}

}  // namespace

void IdxReader::Close::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

IdxReader::IdxReader(const std::string& path, int dimensions) : path_(plain_or_gz(path)) {
  const FileDescriptor file = FileDescriptor::open_for_reading(path_);
  struct stat info {};
  fstat(file.get(), &info);
  file_.reset(gzdopen(dup(file.get()), "rb"));
  if (!file_) throw Error(path_ + ": cannot be opened by zlib");
  unsigned char magic[4];
  read_bytes(magic, 4, "the header");
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedBytes || magic[3] != dimensions)
    throw DataError(path_ + ": is no IDX file of bytes with " + std::to_string(dimensions) +
                    " dimensions: its first four bytes are " + std::to_string(magic[0]) + " " +
                    std::to_string(magic[1]) + " " + std::to_string(magic[2]) + " " + std::to_string(magic[3]) +
                    ", expected 0 0 8 " + std::to_string(dimensions));
  for (int d = 0; d < dimensions; ++d) {
    unsigned char b[4];
    read_bytes(b, 4, "the header");
    const int64_t extent = int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    shape_.push_back(extent);
    if (d > 0) item_bytes_ *= extent;
    if (item_bytes_ < 1 || item_bytes_ > kMaxIdxItemBytes)
      throw DataError(path_ + ": dimension " + std::to_string(d) + " is " + std::to_string(extent) +
                      "; an item must have 1 to " + std::to_string(kMaxIdxItemBytes) + " bytes");
  }
  const int64_t expected = 4 + 4 * dimensions + count() * item_bytes_;
  if (gzdirect(static_cast<gzFile>(file_.get())) && info.st_size != expected)
    throw DataError(path_ + ": has " + std::to_string(info.st_size) + " bytes, its header asks for " +
                    std::to_string(expected) + "; copy it again");
}

void IdxReader::read_bytes(void* to, int64_t count, const std::string& what) {
  gzFile file = static_cast<gzFile>(file_.get());
  const int got = gzread(file, to, static_cast<unsigned>(count));
  if (got == count) return;
  int code = Z_OK;
  const char* reason = gzerror(file, &code);
  throw DataError(path_ + ": cannot read all of " + what + ": " + (code != Z_OK ? reason : "the file ends") +
                  "; copy it again");
}

void IdxReader::read(std::string& item) {
  item.resize(static_cast<size_t>(item_bytes_));
  read_bytes(item.data(), item_bytes_, "item " + std::to_string(position_) + " of " + std::to_string(count()));
  if (++position_ < count()) return;
  char beyond;
  gzFile file = static_cast<gzFile>(file_.get());
  const int got = gzread(file, &beyond, 1);
  if (got != 0)
    throw DataError(
        path_ +
        (got > 0 ? ": goes on after the last item that its header names" : ": is damaged: its checksum does not fit") +
        "; copy it again");
}

void IdxReader::skip(int64_t items) {
  const int64_t bytes = items * item_bytes_;
  if (gzseek(static_cast<gzFile>(file_.get()), bytes, SEEK_CUR) < 0)
    throw DataError(path_ + ": ends or is damaged within its first " + std::to_string(position_ + items) + " items");
  position_ += items;
}

std::string idx_header(const std::vector<int64_t>& shape) {
  std::string bytes = {0, 0, kUnsignedBytes, static_cast<char>(shape.size())};
  for (const int64_t extent : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift & 0xff);
  }
  return bytes;
}

}  // namespace tactus
