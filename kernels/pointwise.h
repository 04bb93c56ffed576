// Elementwise operations on rows, with any leading dimension.
#pragma once

#include "core/context.h"
#include "core/segments.h"

namespace tactus {

/// y = alpha x + beta y (y is not read when beta is 0). y may be x.
template <class D, class T>
void axpby(const Context& ctx, double alpha, Mat<const T> x, double beta, Mat<T> y);

/// y = x converted from T to U (both floating types of the back end: double, float, bf16).
template <class D, class T, class U>
void cast(const Context& ctx, int64_t n, const T* x, U* y);

/// y = max(0, x); NaN stays NaN. y may be x.
template <class D, class T>
void relu_forward(const Context& ctx, Mat<const T> x, Mat<T> y);
/// dx = y > 0 ? dy : 0 (NaN in y passes dy). dx may be dy.
template <class D, class T>
void relu_backward(const Context& ctx, Mat<const T> dy, Mat<const T> y, Mat<T> dx);

/// Gated linear unit (Dauphin et al. 2017): x [rows, 2c] = (a | b), y [rows, c] = a sigmoid(b).
template <class D, class T>
void glu_forward(const Context& ctx, Mat<const T> x, Mat<T> y);
template <class D, class T>
void glu_backward(const Context& ctx, Mat<const T> dy, Mat<const T> x, Mat<T> dx);

/// y = scale x + table[row within its sequence]; table [>= longest, cols] in acc_t<T>. y may be x.
template <class D, class T>
void scale_add_table(const Context& ctx, Mat<const T> x, double scale, const acc_t<T>* table, SegmentsView segments,
                     Mat<T> y);

/// y[i] = x[index[i]] for whole rows. index -1 gives a zero row.
template <class D, class T>
void gather_rows(const Context& ctx, Mat<const T> x, const int32_t* index, Mat<T> y);

}  // namespace tactus
