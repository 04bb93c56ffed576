// Strided 1-D convolution over packed segments as unfold + matrix product. Weights are [out, kernel * in], tap-major,
// so an unfolded row is `kernel` consecutive input rows.
#pragma once

#include "core/context.h"
#include "core/segments.h"

namespace tactus {

/// Rows after one convolution: floor((length + 2 pad - kernel) / stride) + 1, 0 for an empty sequence. The one length
/// formula.
constexpr int64_t conv1d_length(int64_t length, int64_t kernel, int64_t stride, int64_t pad) {
  return length <= 0 || length + 2 * pad < kernel ? 0 : (length + 2 * pad - kernel) / stride + 1;
}

/// columns[t, j * channels + c] = x[t * stride + j - pad, c] inside its sequence, 0 outside.
/// x [in.rows, channels], columns [out.rows, kernel * channels].
template <class D, class T>
void unfold(const Context& ctx, Mat<const T> x, SegmentsView in, SegmentsView out, int kernel, int stride, int pad,
            Mat<T> columns);
/// The adjoint: dx assigned, each entry the sum over its taps in tap order.
template <class D, class T>
void fold(const Context& ctx, Mat<const T> dcolumns, SegmentsView in, SegmentsView out, int kernel, int stride, int pad,
          Mat<T> dx);

}  // namespace tactus
