// CUDA Adam: one pass over flat buffers in f32, the working copy written in the same pass.
#include <cmath>

#include "kernels/adam.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

template <class T>
struct Adam {
  float grad_scale, beta1, rest1, beta2, rest2, eps, decay, rate;  // rest = 1 - beta, taken in double
  const float* coefficient;
  float *master, *m, *v, *grad;
  T* working;
  bool zero_grad, wide;
  __device__ void operator()(int64_t, int64_t c, int n) const {
    float p[kGroup], mean[kGroup], square[kGroup], g[kGroup];
    const float factor = coefficient ? grad_scale * *coefficient : grad_scale;
    if (zero_grad && isnan(factor)) clear(c, n);
    if (isnan(factor)) return;
    load_group(static_cast<const float*>(master + c), n, wide, p);
    load_group(static_cast<const float*>(m + c), n, wide, mean);
    load_group(static_cast<const float*>(v + c), n, wide, square);
    load_group(static_cast<const float*>(grad + c), n, wide, g);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      g[i] *= factor;
      p[i] -= decay * p[i];
      mean[i] = beta1 * mean[i] + rest1 * g[i];
      square[i] = beta2 * square[i] + rest2 * g[i] * g[i];
      p[i] -= rate * mean[i] / (sqrtf(square[i]) + eps);
    }
    store_group(master + c, n, wide, p);
    store_group(m + c, n, wide, mean);
    store_group(v + c, n, wide, square);
    if (working) store_group(working + c, n, wide, p);
    if (zero_grad) clear(c, n);
  }
  __device__ void clear(int64_t c, int n) const {
    const float zeros[kGroup] = {};
    store_group(grad + c, n, wide, zeros);
  }
};

__global__ void coefficient_kernel(const double* squared_norm, const double* loss, double divisor, double clip_norm,
                                   float* coefficient) {
  const double norm = sqrt(*squared_norm) / divisor;
  const double clip = clip_norm > 0 ? fmin(1.0, clip_norm / (norm + 1e-6)) : 1.0;
  *coefficient = isfinite(norm) && isfinite(*loss) ? static_cast<float>(clip / divisor) : __uint_as_float(0x7fc00000u);
}

}  // namespace

template <class D, class A>
void adam_coefficient(const Context& ctx, const double* squared_norm, const double* loss, double divisor,
                      double clip_norm, A* coefficient) {
  coefficient_kernel<<<1, 1, 0, stream_of(ctx)>>>(squared_norm, loss, divisor, clip_norm, coefficient);
  cuda_check_launch("adam_coefficient");
}

template <class D, class T>
void adam_step(const Context& ctx, int64_t n, const AdamOptions& options, const acc_t<T>* coefficient, acc_t<T>* master,
               acc_t<T>* m, acc_t<T>* v, acc_t<T>* grad, T* working) {
  check_value(n >= 0, "adam_step", "n", "not negative", n);
  check_value(options.step >= 1, "adam_step", "step", "at least 1", options.step);
  const double t = static_cast<double>(options.step);
  const double rate =
      options.learning_rate * std::sqrt(1 - std::pow(options.beta2, t)) / (1 - std::pow(options.beta1, t));
  const bool wide =
      wide_pointer(master) && wide_pointer(m) && wide_pointer(v) && wide_pointer(grad) && wide_pointer(working);
  const Adam<T> f{static_cast<float>(options.grad_scale),
                  static_cast<float>(options.beta1),
                  static_cast<float>(1 - options.beta1),
                  static_cast<float>(options.beta2),
                  static_cast<float>(1 - options.beta2),
                  static_cast<float>(options.eps),
                  static_cast<float>(options.learning_rate * options.weight_decay),
                  static_cast<float>(rate),
                  coefficient,
                  master,
                  m,
                  v,
                  grad,
                  working,
                  options.zero_grad,
                  wide};
  for_each_group(ctx, 1, n, f, "adam_step");
}

template void adam_coefficient<Cuda, float>(const Context&, const double*, const double*, double, double, float*);
template void adam_step<Cuda, float>(const Context&, int64_t, const AdamOptions&, const float*, float*, float*, float*,
                                     float*, float*);
template void adam_step<Cuda, bf16>(const Context&, int64_t, const AdamOptions&, const float*, float*, float*, float*,
                                    float*, bf16*);

}  // namespace tactus
