// IDX files, the format of MNIST: a big-endian header (two zero bytes, type, number of dimensions, the dimensions) and
// the numbers. Only unsigned bytes (type 8) are read and written; reading also takes gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tactus {

class IdxReader {
 public:
  /// Opens `path`, or `path`.gz where only that exists. DataError when it is no IDX file of bytes with `dimensions`
  /// dimensions, an item has more than kMaxIdxItemBytes, or a plain file's size is not what its header says.
  IdxReader(const std::string& path, int dimensions);

  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t count() const { return shape_[0]; }
  int64_t item_bytes() const { return item_bytes_; }
  const std::string& path() const { return path_; }
  /// The next item, item_bytes() bytes. After the last of the file, damage or bytes too many are a DataError; an item
  /// that the file lacks is one at once.
  void read(std::string& item);
  void skip(int64_t items);

 private:
  void read_bytes(void* to, int64_t count, const std::string& what);

  struct Close {
    void operator()(void* file) const;
  };
  std::string path_;
  std::unique_ptr<void, Close> file_;
  std::vector<int64_t> shape_;
  int64_t item_bytes_ = 1, position_ = 0;
};
constexpr int64_t kMaxIdxItemBytes = int64_t{1} << 20;

std::string idx_header(const std::vector<int64_t>& shape);

}  // namespace tactus
