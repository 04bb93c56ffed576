#include "kernels/layer_mix.h"

#include <vector>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {

template <class D, class T>
void layer_mix_weights(const Context&, int64_t layers, const T* a, acc_t<T>* w) {
  const T base = log_sum_exp(a, layers);
  for (int64_t l = 0; l < layers; ++l) w[l] = exp_of(a[l] - base);
}

template <class D, class T>
void layer_mix_forward(const Context& ctx, Mat<const T> x, int64_t layers, const acc_t<T>* w, Mat<T> y) {
  check_shape("layer_mix_forward", "x", x, y.rows, layers * y.cols);
  parallel_for(ctx, y.rows, layers * y.cols, [&](int64_t r) {
    T* out = y.row(r);
    std::fill_n(out, y.cols, T(0));
    for (int64_t l = 0; l < layers; ++l) add_scaled(w[l], x.row(r) + l * y.cols, out, y.cols);
  });
}

template <class D, class T>
void layer_mix_backward_x(const Context& ctx, Mat<const T> dy, int64_t layers, const acc_t<T>* w, Mat<T> dx) {
  check_shape("layer_mix_backward_x", "dx", dx, dy.rows, layers * dy.cols);
  parallel_for(ctx, dy.rows, layers * dy.cols, [&](int64_t r) {
    const T* g = dy.row(r);
    for (int64_t l = 0; l < layers; ++l) {
      T* out = dx.row(r) + l * dy.cols;
#pragma omp simd
      for (int64_t i = 0; i < dy.cols; ++i) out[i] = w[l] * g[i];
    }
  });
}

template <class D, class T>
void layer_mix_backward_weights(const Context& ctx, Mat<const T> dy, Mat<const T> x, int64_t layers, const acc_t<T>* w,
                                acc_t<T>* da) {
  check_shape("layer_mix_backward_weights", "x", x, dy.rows, layers * dy.cols);
  std::vector<T> g(static_cast<size_t>(layers), T(0));
  parallel_tasks(ctx, layers, dy.rows * layers * dy.cols, [&](int64_t l) {
    for (int64_t r = 0; r < dy.rows; ++r) g[l] += dot(dy.row(r), x.row(r) + l * dy.cols, dy.cols);
  });
  const T mean = dot(w, g.data(), layers);
  for (int64_t l = 0; l < layers; ++l) da[l] += w[l] * (g[l] - mean);
}

#define TACTUS_INSTANTIATE(T)                                                                          \
  template void layer_mix_weights<Cpu, T>(const Context&, int64_t, const T*, T*);                      \
  template void layer_mix_forward<Cpu, T>(const Context&, Mat<const T>, int64_t, const T*, Mat<T>);    \
  template void layer_mix_backward_x<Cpu, T>(const Context&, Mat<const T>, int64_t, const T*, Mat<T>); \
  template void layer_mix_backward_weights<Cpu, T>(const Context&, Mat<const T>, Mat<const T>, int64_t, const T*, T*);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
