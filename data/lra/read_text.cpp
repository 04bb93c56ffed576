#include <algorithm>
#include <tuple>

#include "core/files/files.h"
#include "data/lra/lra_inputs.h"
#include "data/lra/lra_reader.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct Review {
  std::string name;  ///< without folder and ".txt"
  bool positive = false;
};

std::vector<Review> list_reviews(const fs::path& root) {
  std::vector<Review> reviews;
  for (const bool positive : {false, true}) {
    const fs::path folder = root / (positive ? "pos" : "neg");
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    if (error) throw DataError(folder.string() + ": cannot list the folder: " + error.message());
    const size_t before = reviews.size();
    for (const fs::directory_entry& entry : entries) {
      if (entry.path().extension() == ".txt") reviews.push_back({entry.path().stem().string(), positive});
    }
    if (reviews.size() == before) throw DataError(folder.string() + ": there is no .txt file");
  }
  std::sort(reviews.begin(), reviews.end(), [](const Review& a, const Review& b) {
    return std::tie(a.name, a.positive) < std::tie(b.name, b.positive);
  });
  return reviews;
}

class ReviewReader : public LraReader {
 public:
  ReviewReader(const fs::path& root, OnError on_error)
      : LraReader(on_error, true), root_(root), reviews_(list_reviews(root)) {}

  bool next(Item& item) override {
    while (position_ < reviews_.size()) {
      const Review& review = reviews_[position_++];
      item = Item{};
      const std::string folder = review.positive ? "pos" : "neg";
      item.id = folder + "/" + review.name;
      item.where = (root_ / folder / (review.name + ".txt")).string();
      try {
        item.src_text = read_text_file(item.where);
        item.tgt_text = review.positive ? "1" : "0";
        return true;
      } catch (const DataError& error) {
        fault("unreadable", item.id, error.what());
      }
    }
    return false;
  }
  int64_t total() const override { return static_cast<int64_t>(reviews_.size()); }

 private:
  fs::path root_;
  std::vector<Review> reviews_;
  size_t position_ = 0;
};

}  // namespace

std::unique_ptr<ItemReader> open_lra_text(const InputOptions& options, const std::string& split, OnError on_error) {
  check_lra_options(options);
  const std::string name = lra_split(split, options.format) == LraSplit::train ? "train" : "test";
  const fs::path root = find_lra_folder(options.path, {"", "aclImdb"}, name);
  return std::make_unique<ReviewReader>(root / name, on_error);
}

}  // namespace tactus
