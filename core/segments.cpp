#include "core/segments.h"

#include <algorithm>

namespace tactus {

Segments::Segments(const Context& ctx, const std::vector<int64_t>& lengths, const std::vector<int32_t>& utterances)
    : offsets_(1, 0), utterances_(utterances) {
  if (!utterances.empty() && utterances.size() != lengths.size()) {
    throw ShapeError("Segments: " + std::to_string(lengths.size()) + " lengths but " +
                     std::to_string(utterances.size()) + " utterance ids");
  }
  int64_t total = 0;
  for (int64_t length : lengths) {
    if (length < 0) throw ShapeError("Segments: negative length " + std::to_string(length));
    total += length;
    if (total > INT32_MAX) throw ShapeError("Segments: a batch holds at most 2^31 - 1 rows");
    offsets_.push_back(static_cast<int32_t>(total));
    longest_ = std::max(longest_, length);
  }
  if (utterances_.empty()) {
    for (size_t i = 0; i < lengths.size(); ++i) utterances_.push_back(static_cast<int32_t>(i));
  }
  std::vector<int32_t> all = offsets_;
  for (size_t i = 0; i < lengths.size(); ++i)
    all.insert(all.end(), static_cast<size_t>(lengths[i]), static_cast<int32_t>(i));
  all.insert(all.end(), utterances_.begin(), utterances_.end());
  device_ = ctx.upload(all, MemoryTag::workspace);
}

std::vector<int64_t> Segments::lengths() const {
  std::vector<int64_t> out(static_cast<size_t>(count()));
  for (int64_t i = 0; i < count(); ++i) out[static_cast<size_t>(i)] = length(i);
  return out;
}

SegmentsView Segments::view() const {
  if (!device_.defined()) return {};
  const int32_t* base = device_.data<int32_t>();
  SegmentsView v;
  v.count = static_cast<int32_t>(count());
  v.rows = static_cast<int32_t>(rows());
  v.longest = static_cast<int32_t>(longest_);
  v.offsets = base;
  v.row_segment = base + v.count + 1;
  v.utterance = v.row_segment + v.rows;
  return v;
}

}  // namespace tactus
