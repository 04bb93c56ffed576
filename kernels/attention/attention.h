// Attention over packed segments with two key sources and keys at a stride: one kernel family for MHA, MQA, GQA, MLA
// (expanded) and MTLA, for training. No [T x T] tensor: running softmax over key tiles, log-sum-exp saved, scores
// recomputed in backward.
//
// Key rows of a sequence are [prompt ; own], numbered j = 0 .. T-1; the query of own row t stands at i = P + t.
//   causal:  columns c = 0 .. floor((i+1)/stride) - 1, key row stride (c+1) - 1 (finished chunks), and, where (i+1) %
//   stride != 0,
//            one more column c = floor(i/stride): the query's own key row i. stride 1 is plain causal attention.
//   full:    columns c = 0 .. ceil(T/stride) - 1, key row min(stride (c+1), T) - 1, for every query.
// The column number c is also the dropout decision's column: decision (utterance, t, head, c) of core/rng.h, on the
// normalised weights. score = scale * (q_head . k_kvhead + q_shared . shared), where a query head is [d_key ; d_shared]
// columns wide and head h reads kv head h / (heads / kv_heads). `shared` (MLA's rotary key) is one vector per row for
// all heads.
#pragma once

#include "core/rng.h"
#include "kernels/attention/key_layout.h"

namespace tactus {

struct AttentionShape {
  int heads = 1, kv_heads = 1;
  int d_key = 0;     ///< columns of k per kv head
  int d_shared = 0;  ///< columns of the key shared by all heads; 0: none
  int d_value = 0;   ///< columns of v per kv head
  int stride = 1;
  bool causal = true;
  double scale = 1;
  DropoutKey dropout = {};
};

/// Key rows of one source; all empty where there is no prompt. k [rows, kv_heads d_key], shared [rows, d_shared],
/// v [rows, kv_heads d_value]; any leading dimensions.
template <class T>
struct KeyRows {
  Mat<T> k, shared, v;
};

/// q [own.rows, heads (d_key + d_shared)], out [own.rows, heads d_value], lse [own.rows, heads] (saved for backward).
/// A query that sees no column gives a zero row and lse = -inf.
template <class D, class T>
void attention_forward(const Context& ctx, const AttentionShape& shape, KeyLayout layout, Mat<const T> q,
                       KeyRows<const T> prompt, KeyRows<const T> own, Mat<T> out, acc_t<T>* lse);

/// All gradients are assigned, with zeros for key rows that no query sees. Sums over queries and heads in fixed order.
template <class D, class T>
void attention_backward(const Context& ctx, const AttentionShape& shape, KeyLayout layout, Mat<const T> q,
                        KeyRows<const T> prompt, KeyRows<const T> own, Mat<const T> out, const acc_t<T>* lse,
                        Mat<const T> dout, Mat<T> dq, KeyRows<T> dprompt, KeyRows<T> down);

}  // namespace tactus
