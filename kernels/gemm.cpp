// Eigen's blocked product, one call per panel of C. Panels are cut here rather than by Eigen, so that bias and ReLU run
// while the panel is in cache and the split depends on nothing but shapes and the thread count.
#include "kernels/gemm.h"

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes the deliberately undefined registers of its own AVX-512 intrinsics for uninitialised variables (GCC bug
// 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_gemm.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ConstMap = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;

/// Part [begin, end) of `extent` that panel i of n covers; panels begin at multiples of 16, the register tile's width.
struct Panel {
  int64_t begin, end;
};
Panel panel_of(int64_t extent, int64_t i, int64_t n) {
  const int64_t width = ((extent + n - 1) / n + 15) / 16 * 16;
  return {std::min(extent, i * width), std::min(extent, (i + 1) * width)};
}

template <class T>
void add_bias_relu(const T* bias, bool relu, int64_t rows, int64_t cols, T* c, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) {
    T* row = c + r * ld;
    if (bias) {
#pragma omp simd
      for (int64_t j = 0; j < cols; ++j) row[j] += bias[j];
    }
    if (relu) {
#pragma omp simd
      for (int64_t j = 0; j < cols; ++j) row[j] = row[j] < 0 ? T(0) : row[j];
    }
  }
}

}  // namespace

template <class T>
void serial_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                 const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>> out(c, m, n, Eigen::OuterStride<>(ldc));
  if (beta == T(0)) {
    out.setZero();
  } else if (beta != T(1)) {
    out *= beta;
  }
  if (k == 0) return;
  ConstMap<T> left(a, transpose_a ? k : m, transpose_a ? m : k, Eigen::OuterStride<>(lda));
  ConstMap<T> right(b, transpose_b ? n : k, transpose_b ? k : n, Eigen::OuterStride<>(ldb));
  if (transpose_a && transpose_b) {
    out.noalias() += alpha * left.transpose() * right.transpose();
  } else if (transpose_a) {
    out.noalias() += alpha * left.transpose() * right;
  } else if (transpose_b) {
    out.noalias() += alpha * left * right.transpose();
  } else {
    out.noalias() += alpha * left * right;
  }
}

template <class D, class T, class U>
void gemm(const Context& ctx, Mat<const T> a, Mat<const T> b, Mat<U> c, const GemmOptions<T>& options) {
  const int64_t m = c.rows, n = c.cols, k = options.transpose_a ? a.rows : a.cols;
  check_shape("gemm", "a", a, options.transpose_a ? k : m, options.transpose_a ? m : k);
  check_shape("gemm", "b", b, options.transpose_b ? n : k, options.transpose_b ? k : n);
  check_shape("gemm", "c", c, m, n);
  check_value(options.batch >= 0, "gemm", "batch", "not negative", options.batch);
  // A vector unit does some 16 multiply-adds in the time of one elementary operation.
  const int64_t work = options.batch * m * n * std::max<int64_t>(k / 16, 1);
  const int64_t threads = threads_for(ctx, options.batch * std::max(m, n), work);
  const int64_t panels = options.batch >= threads ? 1 : threads;
  const T alpha = static_cast<T>(options.alpha), beta = static_cast<T>(options.beta);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t task = 0; task < options.batch * panels; ++task) {
    const int64_t product = task / panels;
    const T* a0 = a.ptr + product * options.stride_a;
    const T* b0 = b.ptr + product * options.stride_b;
    U* c0 = c.ptr + product * options.stride_c;
    Panel rows{0, m}, cols{0, n};
    (m >= n ? rows : cols) = panel_of(std::max(m, n), task % panels, panels);
    const int64_t height = rows.end - rows.begin, width = cols.end - cols.begin;
    if (height == 0 || width == 0) continue;
    a0 += rows.begin * (options.transpose_a ? 1 : a.ld);
    b0 += cols.begin * (options.transpose_b ? b.ld : 1);
    c0 += rows.begin * c.ld + cols.begin;
    serial_gemm<T>(options.transpose_a, options.transpose_b, height, width, k, alpha, a0, a.ld, b0, b.ld, beta, c0,
                   c.ld);
    add_bias_relu<T>(options.bias ? options.bias + cols.begin : nullptr, options.relu, height, width, c0, c.ld);
  }
}

template void serial_gemm(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*, int64_t,
                          double, double*, int64_t);
template void serial_gemm(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
                          float, float*, int64_t);
template void gemm<Cpu, double, double>(const Context&, Mat<const double>, Mat<const double>, Mat<double>,
                                        const GemmOptions<double>&);
template void gemm<Cpu, float, float>(const Context&, Mat<const float>, Mat<const float>, Mat<float>,
                                      const GemmOptions<float>&);

}  // namespace tactus
