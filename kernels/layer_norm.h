// Layer normalisation (Ba et al. 2016) with biased variance.
#pragma once

#include "core/context.h"

namespace tactus {

/// y = (x - mean) rstd gamma + beta for each row; mean, rstd [rows] in acc_t<T> are saved for backward. y may not be x.
template <class D, class T>
void layer_norm_forward(const Context& ctx, Mat<const T> x, const T* gamma, const T* beta, double eps, Mat<T> y,
                        acc_t<T>* mean, acc_t<T>* rstd);
/// dx assigned (may be dy); dgamma, dbeta [cols] accumulated. Sums over rows in fixed order.
template <class D, class T>
void layer_norm_backward(const Context& ctx, Mat<const T> dy, Mat<const T> x, const T* gamma, const acc_t<T>* mean,
                         const acc_t<T>* rstd, Mat<T> dx, acc_t<T>* dgamma, acc_t<T>* dbeta);

}  // namespace tactus
