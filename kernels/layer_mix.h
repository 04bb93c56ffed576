// Weighted sum of the layers of a self-supervised encoder (Peters et al. 2018, ELMo; SUPERB's feature extraction):
//   w = softmax(a)      y[r, d] = sum over l of w_l x[r, l, d]
// Frames hold their layers side by side, x [rows, layers x width].
#pragma once

#include "core/context.h"

namespace tactus {

/// w = softmax(a), both [layers]; w is saved for backward.
template <class D, class T>
void layer_mix_weights(const Context& ctx, int64_t layers, const T* a, acc_t<T>* w);
/// y [rows, width], assigned.
template <class D, class T>
void layer_mix_forward(const Context& ctx, Mat<const T> x, int64_t layers, const acc_t<T>* w, Mat<T> y);
/// dx[r, l, d] = w_l dy[r, d]; assigned.
template <class D, class T>
void layer_mix_backward_x(const Context& ctx, Mat<const T> dy, int64_t layers, const acc_t<T>* w, Mat<T> dx);
/// da_l += w_l (g_l - sum over k of w_k g_k) with g_l = sum over r and d of dy[r, d] x[r, l, d]; summed in an order
/// that depends on the shape alone.
template <class D, class T>
void layer_mix_backward_weights(const Context& ctx, Mat<const T> dy, Mat<const T> x, int64_t layers, const acc_t<T>* w,
                                acc_t<T>* da);

}  // namespace tactus
