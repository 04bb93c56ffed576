#include "kernels/adam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {

template <class D, class A>
void adam_coefficient(const Context&, const double* squared_norm, const double* loss, double divisor, double clip_norm,
                      A* coefficient) {
  const double norm = std::sqrt(*squared_norm) / divisor;
  const double clip = clip_norm > 0 ? std::min(1.0, clip_norm / (norm + 1e-6)) : 1.0;
  const bool finite = std::isfinite(norm) && std::isfinite(*loss);
  *coefficient = finite ? static_cast<A>(clip / divisor) : std::numeric_limits<A>::quiet_NaN();
}

template <class D, class T>
void adam_step(const Context& ctx, int64_t n, const AdamOptions& options, const acc_t<T>* coefficient, acc_t<T>* master,
               acc_t<T>* m, acc_t<T>* v, acc_t<T>* grad, T* working) {
  check_value(n >= 0, "adam_step", "n", "not negative", n);
  check_value(options.step >= 1, "adam_step", "step", "at least 1", options.step);
  const double t = static_cast<double>(options.step);
  // Powers and the step size in double: 1 - beta2^t loses most digits of a float in the first steps.
  const T rate = static_cast<T>(options.learning_rate * std::sqrt(1 - std::pow(options.beta2, t)) /
                                (1 - std::pow(options.beta1, t)));
  const T decay = static_cast<T>(options.learning_rate * options.weight_decay), eps = static_cast<T>(options.eps);
  const T keep1 = static_cast<T>(options.beta1), take1 = static_cast<T>(1 - options.beta1);
  const T keep2 = static_cast<T>(options.beta2), take2 = static_cast<T>(1 - options.beta2);
  const T grad_scale = static_cast<T>(options.grad_scale) * (coefficient ? *coefficient : T(1));
  if (coefficient && std::isnan(*coefficient)) {
    if (options.zero_grad) std::fill_n(grad, n, T(0));
    return;
  }
  const bool copy = working && working != master;
  parallel_blocks(ctx, n, 4096, 8, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const T g = grad_scale * grad[i];
      const T first = keep1 * m[i] + take1 * g, second = keep2 * v[i] + take2 * g * g;
      m[i] = first;
      v[i] = second;
      const T decayed = master[i] - decay * master[i];
      master[i] = decayed - rate * first / (std::sqrt(second) + eps);
    }
    if (options.zero_grad) std::fill(grad + begin, grad + end, T(0));
    if (copy) std::copy(master + begin, master + end, working + begin);
  });
}

#define TACTUS_INSTANTIATE(T)                                                                               \
  template void adam_coefficient<Cpu, T>(const Context&, const double*, const double*, double, double, T*); \
  template void adam_step<Cpu, T>(const Context&, int64_t, const AdamOptions&, const T*, T*, T*, T*, T*, T*);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
