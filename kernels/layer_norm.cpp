#include "kernels/layer_norm.h"

#include <cmath>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_parallel.h"
#include "kernels/shared/ordered_sum.h"

namespace tactus {
namespace {

constexpr int64_t kRowBlock = 64;  // rows whose parameter gradients are summed before the ordered sum over blocks

}  // namespace

template <class D, class T>
void layer_norm_forward(const Context& ctx, Mat<const T> x, const T* gamma, const T* beta, double eps, Mat<T> y,
                        acc_t<T>* mean, acc_t<T>* rstd) {
  check_shape("layer_norm_forward", "x", x, y.rows, y.cols);
  check_shape("layer_norm_forward", "y", y, y.rows, y.cols);
  const int64_t n = y.cols;
  parallel_for(ctx, y.rows, 4 * n, [&](int64_t r) {
    const T* in = x.row(r);
    T* out = y.row(r);
    T sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += in[i];
    const T m = sum / static_cast<T>(n);
    // The second pass sums squares about the mean: E[x^2] - E[x]^2 would cancel.
#pragma omp simd reduction(+ : square)
    for (int64_t i = 0; i < n; ++i) square += (in[i] - m) * (in[i] - m);
    const T s = T(1) / std::sqrt(square / static_cast<T>(n) + static_cast<T>(eps));
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - m) * s * gamma[i] + beta[i];
    mean[r] = m, rstd[r] = s;
  });
}

template <class D, class T>
void layer_norm_backward(const Context& ctx, Mat<const T> dy, Mat<const T> x, const T* gamma, const acc_t<T>* mean,
                         const acc_t<T>* rstd, Mat<T> dx, acc_t<T>* dgamma, acc_t<T>* dbeta) {
  check_shape("layer_norm_backward", "dy", dy, x.rows, x.cols);
  check_shape("layer_norm_backward", "x", x, x.rows, x.cols);
  check_shape("layer_norm_backward", "dx", dx, x.rows, x.cols);
  const int64_t n = x.cols;
  BlockSums<T> sums(ctx, x.rows, kRowBlock, 2 * n);
  parallel_blocks(ctx, x.rows, kRowBlock, 12 * n, [&](int64_t begin, int64_t end) {
    T *block_gamma = sums.block(begin / kRowBlock), *block_beta = block_gamma + n;
    for (int64_t r = begin; r < end; ++r) {
      const T *g = dy.row(r), *in = x.row(r), m = mean[r], s = rstd[r];
      T* out = dx.row(r);
      T sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
      for (int64_t i = 0; i < n; ++i) {
        const T normal = (in[i] - m) * s, scaled = g[i] * gamma[i];
        sum += scaled;
        product += scaled * normal;
      }
      sum /= static_cast<T>(n), product /= static_cast<T>(n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const T normal = (in[i] - m) * s, grad = g[i];
        block_gamma[i] += grad * normal;
        block_beta[i] += grad;
        out[i] = s * (grad * gamma[i] - sum - normal * product);
      }
    }
  });
  sums.add_to(ctx, 0, n, dgamma);
  sums.add_to(ctx, n, n, dbeta);
}

#define TACTUS_INSTANTIATE(T)                                                                                         \
  template void layer_norm_forward<Cpu, T>(const Context&, Mat<const T>, const T*, const T*, double, Mat<T>, T*, T*); \
  template void layer_norm_backward<Cpu, T>(const Context&, Mat<const T>, Mat<const T>, const T*, const T*, const T*, \
                                            Mat<T>, T*, T*);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
