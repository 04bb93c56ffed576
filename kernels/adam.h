// Adam on flat buffers, in fairseq's form: decoupled weight decay first, eps added before the bias correction.
//   p -= lr wd p;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g g;  p -= lr sqrt(1-b2^t) / (1-b1^t) m / (sqrt(v) + eps)
#pragma once

#include "core/context.h"

namespace tactus {

struct AdamOptions {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;        ///< t, from 1
  double grad_scale = 1;   ///< multiplies every gradient
  bool zero_grad = false;  ///< gradients become zero in the same pass
};

/// *coefficient = min(1, clip_norm / (norm + 1e-6)) / divisor with norm = sqrt(*squared_norm) / divisor: what a
/// gradient that was summed over `divisor` tokens is multiplied by. clip_norm 0: no clipping. NaN where the norm or
/// *loss is not finite: such a step is to be skipped. All pointers are of the device.
template <class D, class A>
void adam_coefficient(const Context& ctx, const double* squared_norm, const double* loss, double divisor,
                      double clip_norm, A* coefficient);

/// One pass over n parameters. `coefficient` (null: 1), on the device, multiplies every gradient; where it is NaN
/// masters and moments stay as they are. `working` receives the updated master in the compute type (null: none, or
/// master itself is used).
template <class D, class T>
void adam_step(const Context& ctx, int64_t n, const AdamOptions& options, const acc_t<T>* coefficient, acc_t<T>* master,
               acc_t<T>* m, acc_t<T>* v, acc_t<T>* grad, T* working);

}  // namespace tactus
