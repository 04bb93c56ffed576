#include "data/lra/idx_items.h"

namespace tactus {

IdxItems::IdxItems(const std::filesystem::path& folder, const std::string& prefix, int classes, OnError on_error)
    : LraReader(on_error, true),
      images_((folder / (prefix + "-images-idx3-ubyte")).string(), 3),
      labels_((folder / (prefix + "-labels-idx1-ubyte")).string(), 1),
      prefix_(prefix),
      classes_(classes),
      end_(images_.count()) {
  if (images_.count() != labels_.count())
    throw DataError(images_.path() + ": has " + std::to_string(images_.count()) + " pictures, but " + labels_.path() +
                    " has " + std::to_string(labels_.count()) + " labels");
}

void IdxItems::restrict(int64_t begin, int64_t end) {
  images_.skip(begin);
  labels_.skip(begin);
  begin_ = position_ = begin;
  end_ = end;
}

bool IdxItems::next(Item& item) {
  while (position_ < end_) {
    item = Item{};
    std::string label;
    images_.read(item.src_text);
    labels_.read(label);
    item.id = prefix_ + "/" + std::to_string(position_);
    item.where = images_.path() + ": picture " + std::to_string(position_);
    ++position_;
    const int value = static_cast<unsigned char>(label[0]);
    if (value < classes_) {
      item.tgt_text = std::to_string(value);
      return true;
    }
    fault("bad_label", item.id,
          item.where + ": its label in " + labels_.path() + " is " + std::to_string(value) + ", expected less than " +
              std::to_string(classes_));
  }
  return false;
}

}  // namespace tactus
