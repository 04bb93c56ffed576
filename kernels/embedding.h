// Token embedding.
#pragma once

#include <vector>

#include "core/context.h"

namespace tactus {

/// Token ids of a packed batch with the order that makes the gradient of the table deterministic without atomics: rows
/// sorted by token (stable), and where each distinct token's run begins.
struct TokenIndex {
  Tensor ids;     ///< i32 [rows]
  Tensor order;   ///< i32 [rows], row numbers sorted by token
  Tensor starts;  ///< i32 [unique + 1], offsets into order
  int64_t rows = 0, unique = 0;
  /// DataError when an id is outside [0, vocabulary).
  static TokenIndex make(const Context& ctx, const std::vector<int32_t>& ids, int64_t vocabulary);
};

/// y[r] = scale * table[ids[r]]; table [vocabulary, width].
template <class D, class T>
void embedding_forward(const Context& ctx, Mat<const T> table, const TokenIndex& tokens, double scale, Mat<T> y);
/// dtable[id] += scale * sum of dy over the rows with that id, in row order.
template <class D, class T>
void embedding_backward(const Context& ctx, Mat<const T> dy, const TokenIndex& tokens, double scale,
                        Mat<acc_t<T>> dtable);

}  // namespace tactus
