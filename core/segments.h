// Segments: the one batch layout. Rows of all sequences are laid end to end, [rows, width]; offsets say where each
// begins.
#pragma once

#include <vector>

#include "core/context.h"

namespace tactus {

/// Device view for kernels.
struct SegmentsView {
  const int32_t* offsets = nullptr;      ///< count + 1 values, first 0, last = rows
  const int32_t* row_segment = nullptr;  ///< for each row the number of its segment
  const int32_t* utterance = nullptr;    ///< for each segment the utterance id, key of its random numbers
  int32_t count = 0;
  int32_t rows = 0;
  int32_t longest = 0;
};

class Segments {
 public:
  Segments() = default;
  /// Lengths may be 0. `utterances` are ids in the corpus (empty: 0, 1, 2, ...).
  Segments(const Context& ctx, const std::vector<int64_t>& lengths, const std::vector<int32_t>& utterances = {});
  int64_t count() const { return static_cast<int64_t>(offsets_.empty() ? 0 : offsets_.size() - 1); }
  int64_t rows() const { return offsets_.empty() ? 0 : offsets_.back(); }
  int64_t begin(int64_t i) const { return offsets_[i]; }
  int64_t length(int64_t i) const { return offsets_[i + 1] - offsets_[i]; }
  int64_t longest() const { return longest_; }
  const std::vector<int32_t>& offsets() const { return offsets_; }
  const std::vector<int32_t>& utterances() const { return utterances_; }
  std::vector<int64_t> lengths() const;
  SegmentsView view() const;

 private:
  std::vector<int32_t> offsets_, utterances_;
  int64_t longest_ = 0;
  Tensor device_;  // offsets, row_segment, utterances in one i32 buffer
};

}  // namespace tactus
