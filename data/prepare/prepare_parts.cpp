#include "data/prepare/prepare_parts.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace tactus {
namespace {

struct Header {
  char magic[8];
  uint64_t key;
  int64_t items, table_bytes, frame_bytes;
};
constexpr char kMagic[8] = {'T', 'A', 'C', 'P', 'A', 'R', 'T', '2'};

class Packer {
 public:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void list(const T& values) {
    number(static_cast<int64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what Packer wrote; `good` turns false at the first thing that does not fit.
class Unpacker {
 public:
  explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}
  bool good = true;
  template <class T>
  T number() {
    T value{};
    if (!take(sizeof value)) return value;
    std::memcpy(&value, bytes_.data() + at_ - sizeof value, sizeof value);
    return value;
  }
  template <class T>
  void list(T& values) {
    const auto count = number<int64_t>();
    const auto left = static_cast<int64_t>((bytes_.size() - at_) / sizeof(values[0]));
    if (count < 0 || count > left) good = false;
    if (!good) return;
    values.resize(static_cast<size_t>(count));
    if (count == 0) return;  // there may be no place to copy to
    const size_t size = values.size() * sizeof(values[0]);
    take(size);
    std::memcpy(values.data(), bytes_.data() + at_ - size, size);
  }
  bool done() const { return good && at_ == bytes_.size(); }

 private:
  bool take(size_t count) {
    if (!good || count > bytes_.size() - at_) return good = false;
    at_ += count;
    return true;
  }
  const std::string& bytes_;
  size_t at_ = 0;
};

void pack(const ProcessedItem& item, Packer& p) {
  p.list(item.reason), p.list(item.message);
  p.number(item.unknown_target), p.number(item.unknown_source), p.number(item.encoded.frames);
  p.list(item.encoded.moments), p.list(item.encoded.tgt_tokens);
  p.list(item.encoded.src_tokens), p.list(item.encoded.src2_tokens);
}

void unpack(ProcessedItem& item, Unpacker& u) {
  u.list(item.reason), u.list(item.message);
  item.unknown_target = u.number<int64_t>(), item.unknown_source = u.number<int64_t>();
  item.encoded.frames = u.number<int64_t>();
  u.list(item.encoded.moments), u.list(item.encoded.tgt_tokens);
  u.list(item.encoded.src_tokens), u.list(item.encoded.src2_tokens);
}

}  // namespace

bool PartStore::load(const std::string& name, uint64_t key, std::vector<ProcessedItem>& items,
                     PartFrames& frames) const {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path(name), error));
  if (error || size < static_cast<int64_t>(sizeof(Header))) return false;
  const FileDescriptor file = FileDescriptor::open_for_reading(path(name));
  Header h;
  read_exactly(file.get(), &h, sizeof h, 0, path(name));
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.key != key || h.table_bytes < 0 || h.frame_bytes < 0)
    return false;
  const int64_t body = size - static_cast<int64_t>(sizeof h);
  if (h.table_bytes > body || h.frame_bytes != body - h.table_bytes || h.items != static_cast<int64_t>(items.size()))
    return false;
  std::string table(static_cast<size_t>(h.table_bytes), '\0');
  read_exactly(file.get(), table.data(), h.table_bytes, sizeof h, path(name));
  Unpacker unpacker(table);
  for (ProcessedItem& item : items) unpack(item, unpacker);
  frames = {path(name), static_cast<int64_t>(sizeof h) + h.table_bytes, h.frame_bytes};
  return unpacker.done();
}

PartFrames PartStore::store(const std::string& name, uint64_t key, std::vector<ProcessedItem>& items) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw Error(folder_ + ": cannot be made: " + error.message());
  Packer packer;
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.key = key, h.items = static_cast<int64_t>(items.size());
  for (const ProcessedItem& item : items) {
    pack(item, packer);
    h.frame_bytes += static_cast<int64_t>(item.encoded.frame_bytes.size());
  }
  h.table_bytes = static_cast<int64_t>(packer.bytes().size());
  AtomicFile file(path(name));
  file.write(&h, sizeof h);
  file.write(packer.bytes());
  for (ProcessedItem& item : items) {
    file.write(item.encoded.frame_bytes.data(), item.encoded.frame_bytes.size());
    item.encoded.frame_bytes = {};
  }
  file.commit();
  return {path(name), static_cast<int64_t>(sizeof h) + h.table_bytes, h.frame_bytes};
}

void PartStore::remove_all() const {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace tactus
