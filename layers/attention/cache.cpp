#include "layers/attention/cache.h"

#include <algorithm>

#include "kernels/pointwise.h"

namespace tactus {

AttentionCache::AttentionCache(const Context& ctx, DType dtype, Shape shape, const Segments& prompt, int64_t max_rows,
                               int64_t max_new)
    : ctx_(ctx),
      dtype_(dtype),
      shape_(shape),
      max_rows_(max_rows),
      max_new_(max_new),
      prompt_lengths_(prompt.lengths()) {
  const int64_t s = shape.stride, count = prompt.count();
  if (count > max_rows) {
    throw Error("attention cache: " + std::to_string(count) + " utterances but room for " + std::to_string(max_rows) +
                " hypotheses");
  }
  std::vector<int32_t> slot_rows, rest_rows, tail_lengths;
  shared_offsets_host_ = {0};
  for (int64_t u = 0; u < count; ++u) {
    const int64_t length = prompt.length(u), begin = prompt.begin(u);
    for (int64_t c = 0; c < length / s; ++c) slot_rows.push_back(static_cast<int32_t>(begin + (c + 1) * s - 1));
    shared_offsets_host_.push_back(static_cast<int32_t>(slot_rows.size()));
    rest_rows.push_back(length % s ? static_cast<int32_t>(begin + length - 1) : -1);
    tail_lengths.push_back(length % s ? 1 : 0);
    max_tail_ = std::max(max_tail_, (length % s + max_new + s - 1) / s);
    row_utterance_host_.push_back(static_cast<int32_t>(u));
  }
  max_tail_ = std::max<int64_t>(max_tail_, 1);
  shared_ = ctx.zeros({static_cast<int64_t>(slot_rows.size()), shape.width}, dtype, MemoryTag::cache);
  shared_offsets_ = ctx.upload(shared_offsets_host_, MemoryTag::cache);
  slot_rows_ = ctx.upload(slot_rows, MemoryTag::cache);
  rest_rows_ = ctx.upload(rest_rows, MemoryTag::cache);
  row_utterance_ = ctx.zeros({max_rows}, DType::i32, MemoryTag::cache);
  ctx.copy(row_utterance_.slice(0, count), ctx.upload(row_utterance_host_, MemoryTag::workspace));
  for (int i = 0; i < 2; ++i) {
    tail_[i] = ctx.zeros({max_rows * max_tail_, shape.width}, dtype, MemoryTag::cache);
    tail_length_[i] = ctx.zeros({max_rows}, DType::i32, MemoryTag::cache);
    live_[i] = ctx.zeros({max_rows, shape.live_width}, accumulator_of(dtype), MemoryTag::cache);
  }
  ctx.copy(tail_length_[0].slice(0, count), ctx.upload(tail_lengths, MemoryTag::workspace));
}

int64_t AttentionCache::tail_slots(int64_t row) const {
  const int64_t length = prompt_lengths_[static_cast<size_t>(row_utterance_host_[static_cast<size_t>(row)])];
  return (length + steps_ + shape_.stride - 1) / shape_.stride - length / shape_.stride;
}

int64_t AttentionCache::slot_count(int64_t row) const {
  const int64_t length = prompt_lengths_[static_cast<size_t>(row_utterance_host_[static_cast<size_t>(row)])];
  return length / shape_.stride + tail_slots(row);
}

int64_t AttentionCache::capacity() const {
  int64_t longest = 0;
  for (int64_t length : prompt_lengths_) longest = std::max(longest, length);
  return longest + max_new_;
}

int64_t AttentionCache::payload() const {
  // Utterances without a live hypothesis keep nothing.
  std::vector<bool> used(prompt_lengths_.size(), false);
  int64_t slots = 0;
  for (int64_t r = 0; r < rows(); ++r) {
    slots += tail_slots(r);
    used[static_cast<size_t>(row_utterance_host_[static_cast<size_t>(r)])] = true;
  }
  for (size_t u = 0; u < used.size(); ++u) slots += used[u] ? prompt_lengths_[u] / shape_.stride : 0;
  return slots * shape_.width * size_of(dtype_);
}

int64_t AttentionCache::payload_unshared() const {
  int64_t slots = 0;
  for (int64_t r = 0; r < rows(); ++r) slots += slot_count(r);
  return slots * shape_.width * size_of(dtype_);
}

int64_t AttentionCache::reserved() const {
  int64_t bytes =
      shared_.bytes() + shared_offsets_.bytes() + slot_rows_.bytes() + rest_rows_.bytes() + row_utterance_.bytes();
  for (int i = 0; i < 2; ++i) bytes += tail_[i].bytes() + tail_length_[i].bytes() + live_[i].bytes();
  return bytes + (table_.defined() ? table_.bytes() : 0);
}

void AttentionCache::begin_step() {
  if (steps_ >= max_new_) {
    throw Error("attention cache: step " + std::to_string(steps_ + 1) + " of a cache made for " +
                std::to_string(max_new_));
  }
  ++steps_;
}

void AttentionCache::reorder(const std::vector<int32_t>& parents) {
  const int64_t n = static_cast<int64_t>(parents.size());
  if (n > max_rows_) {
    throw Error("attention cache: " + std::to_string(n) + " hypotheses in a cache for " + std::to_string(max_rows_));
  }
  std::vector<int32_t> utterances;
  for (int32_t p : parents) utterances.push_back(row_utterance_host_.at(static_cast<size_t>(p)));
  const Tensor index = ctx_.upload(parents, MemoryTag::workspace);
  const int other = 1 - side_;
  const int32_t* lengths = tail_length_[side_].data<int32_t>();
  dispatch(ctx_, dtype_, [&]<class D, class T>() {
    tail_reorder<D, T>(ctx_, tail_[side_].mat<const T>(), index.data<int32_t>(), lengths, n, max_tail_,
                       tail_[other].slice(0, n * max_tail_).mat<T>());
    if (shape_.live_width > 0) {
      using A = acc_t<T>;
      gather_rows<D, A>(ctx_, live_[side_].mat<const A>(), index.data<int32_t>(), live_[other].slice(0, n).mat<A>());
    }
  });
  std::vector<int32_t> new_lengths;
  for (int32_t p : parents) new_lengths.push_back(static_cast<int32_t>(tail_slots(p)));
  ctx_.copy(tail_length_[other].slice(0, n), ctx_.upload(new_lengths, MemoryTag::workspace));
  ctx_.copy(row_utterance_.slice(0, n), ctx_.upload(utterances, MemoryTag::workspace));
  row_utterance_host_ = utterances;
  side_ = other;
}

std::vector<double> AttentionCache::slots_of(int64_t row) const {
  const int32_t u = row_utterance_host_.at(static_cast<size_t>(row));
  const int32_t begin = shared_offsets_host_[static_cast<size_t>(u)],
                end = shared_offsets_host_[static_cast<size_t>(u) + 1];
  std::vector<double> values = ctx_.download_real(shared_.slice(begin, end));
  const int64_t first = row * max_tail_;
  const std::vector<double> own = ctx_.download_real(tail_[side_].slice(first, first + tail_slots(row)));
  values.insert(values.end(), own.begin(), own.end());
  return values;
}

AttentionCache::Snapshot AttentionCache::snapshot() const {
  auto copy = [&](const Tensor& t) {
    Tensor c = ctx_.empty(t.shape(), t.dtype(), MemoryTag::cache);
    ctx_.copy(c, t);
    return c;
  };
  return {copy(tail_[side_]),   copy(tail_length_[side_]), copy(live_[side_]),
          copy(row_utterance_), row_utterance_host_,       steps_};
}

void AttentionCache::restore(const Snapshot& s) {
  ctx_.copy(tail_[side_], s.tail);
  ctx_.copy(tail_length_[side_], s.tail_length);
  ctx_.copy(live_[side_], s.live);
  ctx_.copy(row_utterance_, s.row_utterance);
  row_utterance_host_ = s.row_utterance_host;
  steps_ = s.steps;
}

}  // namespace tactus
