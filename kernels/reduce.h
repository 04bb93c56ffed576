// Sums in fixed order.
#pragma once

#include "core/context.h"

namespace tactus {

/// out[c] (+)= sum over rows of x[r, c].
template <class D, class T>
void column_sum(const Context& ctx, Mat<const T> x, acc_t<T>* out, bool accumulate);

/// *out = sum of n values; out on the device.
template <class D, class A>
void reduce_sum(const Context& ctx, int64_t n, const A* x, A* out);

/// *out = sum of squares of n values, in double; out on the device. Not finite when any value is not.
template <class D, class A>
void squared_norm_to(const Context& ctx, int64_t n, const A* x, double* out);
/// The same on the host; waits for the device.
template <class D, class A>
double squared_norm(const Context& ctx, int64_t n, const A* x);

}  // namespace tactus
