// The single-threaded matrix product that threaded CPU kernels call for their tiles.
#pragma once

#include <cstdint>

namespace tactus {

/// Row-major C [m, n] = alpha op(A) [m, k] op(B) [k, n] + beta C; C is not read when beta is 0. Leading dimensions in
/// elements.
template <class T>
void serial_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                 const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

}  // namespace tactus
