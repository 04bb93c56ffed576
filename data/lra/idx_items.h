// Items of a pair of IDX files: pictures and their labels.
#pragma once

#include <memory>
#include <string>

#include "data/lra/idx.h"
#include "data/lra/lra_reader.h"

namespace tactus {

class IdxItems : public LraReader {
 public:
  /// PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte in `folder`; labels are below `classes`. DataError when the
  /// files do not have the same number of items.
  IdxItems(const std::filesystem::path& folder, const std::string& prefix, int classes, OnError on_error);
  int64_t count() const { return images_.count(); }
  /// Limits the items to [begin, end) of the file.
  void restrict(int64_t begin, int64_t end);

  bool next(Item& item) override;
  int64_t total() const override { return end_ - begin_; }

 private:
  IdxReader images_, labels_;
  std::string prefix_;
  int classes_;
  int64_t begin_ = 0, end_, position_ = 0;
};

}  // namespace tactus
