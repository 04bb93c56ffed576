#include "kernels/adam.h"

#include <cmath>

#include "kernels/check.h"
#include "kernels/cpu_parallel.h"

namespace tactus {

template <class D, class T>
void adam_step(const Context& ctx, int64_t n, const AdamOptions& options, acc_t<T>* master, acc_t<T>* m, acc_t<T>* v,
               const acc_t<T>* grad, T* working) {
  check_value(n >= 0, "adam_step", "n", "not negative", n);
  check_value(options.step >= 1, "adam_step", "step", "at least 1", options.step);
  const double t = static_cast<double>(options.step);
  // Powers and the step size in double: 1 - beta2^t loses most digits of a float in the first steps.
  const T rate = static_cast<T>(options.learning_rate * std::sqrt(1 - std::pow(options.beta2, t)) /
                                (1 - std::pow(options.beta1, t)));
  const T decay = static_cast<T>(options.learning_rate * options.weight_decay), eps = static_cast<T>(options.eps);
  const T keep1 = static_cast<T>(options.beta1), take1 = static_cast<T>(1 - options.beta1);
  const T keep2 = static_cast<T>(options.beta2), take2 = static_cast<T>(1 - options.beta2);
  const T grad_scale = static_cast<T>(options.grad_scale);
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
    if (copy) std::copy(master + begin, master + end, working + begin);
  });
}

template void adam_step<Cpu, double>(const Context&, int64_t, const AdamOptions&, double*, double*, double*,
                                     const double*, double*);
template void adam_step<Cpu, float>(const Context&, int64_t, const AdamOptions&, float*, float*, float*, const float*,
                                    float*);

}  // namespace tactus
