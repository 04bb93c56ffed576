// Matrix products. CPU: Eigen, threaded over row or column blocks. CUDA: cuBLASLt with bias and ReLU in the epilogue.
#pragma once

#include "core/context.h"

namespace tactus {

/// Options of one product. Strides are in elements and serve `batch` independent products of the same shape.
template <class T>
struct GemmOptions {
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  const T* bias = nullptr;  ///< one value per column of C, added after alpha A B + beta C
  bool relu = false;        ///< max(0, .) after the bias; NaN stays NaN
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
};

/// C [m, n] = alpha op(A) [m, k] op(B) [k, n] + beta C, then bias and ReLU. Sums in acc_t<T>. C is not read when beta
/// is 0. U is T, or acc_t<T> (parameter gradients). C must not overlap A or B. k = 0 gives beta C (+ bias).
/// Deterministic: no split over k with unordered sums. ShapeError names the extents.
template <class D, class T, class U>
void gemm(const Context& ctx, Mat<const T> a, Mat<const T> b, Mat<U> c, const GemmOptions<T>& options = {});

}  // namespace tactus
