// Adam on flat buffers, in fairseq's form: decoupled weight decay first, eps added before the bias correction.
//   p -= lr wd p;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g g;  p -= lr sqrt(1-b2^t) / (1-b1^t) m / (sqrt(v) + eps)
#pragma once

#include "core/context.h"

namespace tactus {

struct AdamOptions {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;       ///< t, from 1
  double grad_scale = 1;  ///< multiplies every gradient: 1 / tokens, and the clipping coefficient
};

/// One pass over n parameters. `working` receives the updated master in the compute type (null: none, or master itself
/// is used).
template <class D, class T>
void adam_step(const Context& ctx, int64_t n, const AdamOptions& options, acc_t<T>* master, acc_t<T>* m, acc_t<T>* v,
               const acc_t<T>* grad, T* working);

}  // namespace tactus
