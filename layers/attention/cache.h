// Slots that attention remembers. Finished slots of the prompt are shared by the hypotheses of an utterance; what
// follows lies in tails, one for each hypothesis. The prompt's unfinished chunk (P mod s rows) is copied into each
// hypothesis's first tail slot.
#pragma once

#include <vector>

#include "core/segments.h"
#include "kernels/decode/attention_decode.h"

namespace tactus {

class AttentionCache {
 public:
  struct Shape {
    int64_t width = 0;       ///< numbers in a slot
    int64_t live_width = 0;  ///< numbers of the live slot kept in acc type (0: none)
    int64_t stride = 1;      ///< positions in a slot
  };
  AttentionCache(const Context& ctx, DType dtype, Shape shape, const Segments& prompt, int64_t max_rows,
                 int64_t max_new);

  const Shape& shape() const { return shape_; }
  /// Rows of the longest sequence that the cache can ever hold: longest prompt + max_new.
  int64_t capacity() const;
  int64_t rows() const { return static_cast<int64_t>(row_utterance_host_.size()); }
  /// Bytes of the slots in use, each shared slot once.
  int64_t payload() const;
  /// The same as if every hypothesis held its own copy of the prompt's slots, as the published code does.
  int64_t payload_unshared() const;
  /// Bytes taken from the allocator.
  int64_t reserved() const;
  /// Hypothesis i of the new set continues hypothesis parents[i]; any number up to max_rows.
  void reorder(const std::vector<int32_t>& parents);

  /// Dense copy of one hypothesis's slots [slots, width] on the host, for tests and tools.
  std::vector<double> slots_of(int64_t row) const;
  int64_t slot_count(int64_t row) const;

  /// Everything that steps change, for going back to this state.
  struct Snapshot {
    Tensor tail, tail_length, live, row_utterance;
    std::vector<int32_t> row_utterance_host;
    int64_t steps = 0;
  };
  Snapshot snapshot() const;
  void restore(const Snapshot& s);

  // --- for the mechanisms ---
  /// A table that a mechanism makes at its first step and needs at every later one; undefined before.
  Tensor& table() { return table_; }
  /// Index of the prompt row that ends each shared slot, utterance by utterance, and of each utterance's last row if
  /// its last chunk is unfinished, else -1.
  const Tensor& slot_rows() const { return slot_rows_; }
  const Tensor& rest_rows() const { return rest_rows_; }
  Tensor& shared() { return shared_; }
  Tensor tail() const { return tail_[side_].slice(0, rows() * max_tail_); }
  Tensor live() const { return live_[side_].slice(0, rows()); }
  Tensor tail_length() const { return tail_length_[side_].slice(0, rows()); }
  int64_t max_tail() const { return max_tail_; }
  /// Must be called once for each step before slots are written; Error beyond max_new.
  void begin_step();
  /// Window of the cache for the decode kernel: key columns [0, key_end), value columns [value_begin, value_end).
  template <class T>
  DecodeCache<T> view(int64_t key_end, int64_t value_begin, int64_t value_end) const {
    Mat<const T> shared = shared_.mat<const T>(), tail = this->tail().template mat<const T>();
    return {shared.columns(0, key_end),
            shared.columns(value_begin, value_end),
            shared_offsets_.data<int32_t>(),
            row_utterance_.data<int32_t>(),
            tail.columns(0, key_end),
            tail.columns(value_begin, value_end),
            tail_length_[side_].data<int32_t>(),
            max_tail_};
  }

 private:
  int64_t tail_slots(int64_t row) const;
  Context ctx_;
  DType dtype_;
  Shape shape_;
  int64_t max_rows_, max_new_, max_tail_ = 0, steps_ = 0;
  std::vector<int64_t> prompt_lengths_;
  std::vector<int32_t> row_utterance_host_;
  Tensor shared_, shared_offsets_, slot_rows_, rest_rows_, row_utterance_, table_;
  std::vector<int32_t> shared_offsets_host_;
  Tensor tail_[2], tail_length_[2], live_[2];
  int side_ = 0;
};

}  // namespace tactus
