// Log-softmax and label-smoothed cross-entropy in one, without stored probabilities.
//   loss = -(1 - eps - eps_i) log p(target) - eps_i sum over the vocabulary of log p,   eps_i = eps / (V - 1)
#pragma once

#include "core/context.h"

namespace tactus {

/// For each row: loss and nll = -log p(target), lse (saved), correct = 1 where the target is the (first) largest logit.
/// target -1: a row without loss (all outputs 0). row_weight null: 1.
template <class D, class T>
void cross_entropy_forward(const Context& ctx, Mat<const T> logits, const int32_t* targets, double smoothing,
                           const acc_t<T>* row_weight, acc_t<T>* loss, acc_t<T>* nll, acc_t<T>* lse, int32_t* correct);
/// dlogits = (*grad) * row_weight * (softmax - smoothed target), *grad on the device. dlogits may be logits.
template <class D, class T>
void cross_entropy_backward(const Context& ctx, Mat<const T> logits, const int32_t* targets, double smoothing,
                            const acc_t<T>* row_weight, const acc_t<T>* lse, const acc_t<T>* grad, Mat<T> dlogits);

}  // namespace tactus
