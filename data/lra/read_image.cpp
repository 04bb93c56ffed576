#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "core/files/files.h"
#include "data/lra/idx_items.h"
#include "data/lra/lra_inputs.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPixels = 32 * 32, kRecordBytes = 1 + 3 * kPixels;
constexpr int kClasses = 10;

/// Grey values of one picture whose red, green and blue planes lie one after the other: ITU-R BT.601 weights, cast to
/// int as the reference's image library does it, floor(255.5 / 255 * luma), here in whole numbers.
std::string to_grey(const unsigned char* planes) {
  std::string grey(kPixels, '\0');
  for (int64_t i = 0; i < kPixels; ++i) {
    const int64_t luma = 2989 * planes[i] + 5870 * planes[kPixels + i] + 1140 * planes[2 * kPixels + i];
    grey[i] = static_cast<char>(luma * 511 / (510 * 10000));
  }
  return grey;
}

class CifarReader : public LraReader {
 public:
  CifarReader(const fs::path& root, LraSplit split, OnError on_error) : LraReader(on_error, true) {
    if (split == LraSplit::test) {
      add_file(root / "test_batch.bin");
    } else {
      for (int k = 1; k <= 5; ++k) add_file(root / ("data_batch_" + std::to_string(k) + ".bin"));
    }
    int64_t count = 0;
    for (const Batch& batch : batches_) count += batch.records;
    begin_ = position_ = split == LraSplit::valid ? validation_begin(count) : 0;
    end_ = split == LraSplit::train ? validation_begin(count) : count;
  }

  bool next(Item& item) override {
    while (position_ < end_) {
      item = Item{};
      int64_t record = position_++;
      auto batch = batches_.begin();
      for (; record >= batch->records; ++batch) record -= batch->records;
      std::array<unsigned char, kRecordBytes> bytes;
      read_exactly(batch->file.get(), bytes.data(), kRecordBytes, record * kRecordBytes, batch->path);
      item.id = fs::path(batch->path).stem().string() + "/" + std::to_string(record);
      item.where = batch->path + ": record " + std::to_string(record);
      if (bytes[0] < kClasses) {
        item.tgt_text = std::to_string(bytes[0]);
        item.src_text = to_grey(bytes.data() + 1);
        return true;
      }
      fault("bad_label", item.id, item.where + ": its label is " + std::to_string(bytes[0]) + ", expected 0 to 9");
    }
    return false;
  }
  int64_t total() const override { return end_ - begin_; }

 private:
  struct Batch {
    std::string path;
    FileDescriptor file;
    int64_t records;
  };
  void add_file(const fs::path& path) {
    FileDescriptor file = FileDescriptor::open_for_reading(path.string());
    struct stat info {};
    if (fstat(file.get(), &info) != 0 || info.st_size == 0 || info.st_size % kRecordBytes != 0)
      throw DataError(path.string() + ": has " + std::to_string(info.st_size) + " bytes, expected records of " +
                      std::to_string(kRecordBytes) + " bytes (the binary version of CIFAR-10)");
    batches_.push_back({path.string(), std::move(file), info.st_size / kRecordBytes});
  }

  std::vector<Batch> batches_;
  int64_t begin_ = 0, end_ = 0, position_ = 0;
};

/// The first of the folders that holds FILE or FILE.gz.
fs::path find_idx_folder(const std::string& path, const std::string& file) {
  std::error_code ignored;
  return fs::exists(fs::path(path) / (file + ".gz"), ignored) ? fs::path(path) : find_lra_folder(path, {""}, file);
}

}  // namespace

std::unique_ptr<ItemReader> open_lra_image(const InputOptions& options, const std::string& split, OnError on_error) {
  check_lra_options(options);
  const LraSplit s = lra_split(split, options.format);
  const std::string file = s == LraSplit::test ? "test_batch.bin" : "data_batch_1.bin";
  return std::make_unique<CifarReader>(find_lra_folder(options.path, {"", "cifar-10-batches-bin"}, file), s, on_error);
}

std::unique_ptr<ItemReader> open_fashion_mnist(const InputOptions& options, const std::string& split,
                                               OnError on_error) {
  check_lra_options(options);
  const LraSplit s = lra_split(split, options.format);
  const std::string prefix = s == LraSplit::test ? "t10k" : "train";
  const fs::path root = find_idx_folder(options.path, prefix + "-images-idx3-ubyte");
  auto reader = std::make_unique<IdxItems>(root, prefix, kClasses, on_error);
  const int64_t cut = validation_begin(reader->count());
  if (s == LraSplit::train) reader->restrict(0, cut);
  if (s == LraSplit::valid) reader->restrict(cut, reader->count());
  return reader;
}

}  // namespace tactus
