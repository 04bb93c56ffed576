// One decoding step: each live hypothesis attends to the slots it shares with the other hypotheses of its utterance,
// then to its own tail. Lengths and chunk phases live on the device; nothing here waits for the device or allocates
// from it.
#pragma once

#include "core/context.h"

namespace tactus {

struct DecodeShape {
  int heads = 1, kv_heads = 1;
  int d_key = 0,
      d_value = 0;  ///< per kv head. Absorbed latents: kv_heads 1, d_key r + d_rope, d_value r, v = first columns of k
  double scale = 1;
};

/// Slots shared by the hypotheses of an utterance and the tails of the hypotheses, on the device.
template <class T>
struct DecodeCache {
  Mat<const T> shared_k, shared_v;          ///< [slots of all utterances, kv_heads d_*]
  const int32_t* shared_offsets = nullptr;  ///< [utterances + 1]
  const int32_t* row_utterance = nullptr;   ///< [rows] utterance of each hypothesis
  Mat<const T> tail_k, tail_v;              ///< [rows * max_tail, kv_heads d_*], hypothesis-major
  const int32_t* tail_length = nullptr;     ///< [rows] slots in use, the new one included
  int64_t max_tail = 0;
};

/// q [rows, heads d_key], out [rows, heads d_value]. No slot at all gives a zero row.
template <class D, class T>
void attention_decode(const Context& ctx, const DecodeShape& shape, const DecodeCache<T>& cache, Mat<const T> q,
                      Mat<T> out);

/// Appends one slot to each tail: tail row (row * max_tail + tail_length[row]) = x[row]. Lengths are not changed.
template <class D, class T>
void tail_append(const Context& ctx, Mat<const T> x, const int32_t* tail_length, int64_t max_tail, Mat<T> tail);

/// MTLA's step for position i = positions[row]: w = sigmoid(<code[i / stride], p>); where i % stride == 0 the live sum
/// becomes w c in a new slot (tail_length grows by one), otherwise live += w c in the newest slot. The slot's key
/// becomes k_rope. live [rows, r] in acc_t<T>; tail [rows * max_tail, r + d_rope] = (sum | key).
template <class D, class T>
void mtla_append(const Context& ctx, int stride, Mat<const T> c, Mat<const T> p, Mat<const T> code, Mat<const T> k_rope,
                 const int32_t* positions, int32_t* tail_length, int64_t max_tail, Mat<acc_t<T>> live, Mat<T> tail);

/// x[i] += delta for n integers.
template <class D>
void add_to_all(const Context& ctx, int64_t n, int32_t delta, int32_t* x);

/// Hypothesis i continues hypothesis parent[i]: copies the first tail_length[parent[i]] slots of each tail. y must not
/// be x.
template <class D, class T>
void tail_reorder(const Context& ctx, Mat<const T> x, const int32_t* parent, const int32_t* tail_length, int64_t rows,
                  int64_t max_tail, Mat<T> y);

/// Best k entries of log-softmax(logits[row] / temperature), best first, ties by lower token. Token `forbidden` (-1:
/// none) and, where allow_eos is false, `eos` never win; where only_eos is true nothing but `eos` does. Missing
/// entries: -inf and token -1. values, tokens [rows, k].
template <class D, class T>
void topk_log_softmax(const Context& ctx, Mat<const T> logits, double temperature, int k, int forbidden, int eos,
                      bool allow_eos, bool only_eos, acc_t<T>* values, int32_t* tokens);

}  // namespace tactus
