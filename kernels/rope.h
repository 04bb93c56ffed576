// Rotary position embedding (Su et al. 2021) on interleaved pairs: (x[2i], x[2i+1]) turned by position *
// theta^(-2i/dim).
#pragma once

#include "core/context.h"

namespace tactus {

/// Host-computed (double) table [positions, dim] of (cos, sin) pairs, in acc type `dtype` (f64 or f32).
Tensor rope_table(const Context& ctx, int64_t positions, int64_t dim, double theta, DType dtype);

/// For each row r and head h turns columns h * head_stride .. + dim by positions[r] (by the opposite angle when
/// `inverse`: the backward pass). Other columns of y are left alone. y may be x. table [.., dim] as above, a row per
/// position.
template <class D, class T>
void rope(const Context& ctx, Mat<const T> x, int heads, int64_t head_stride, int64_t dim, const int32_t* positions,
          const acc_t<T>* table, bool inverse, Mat<T> y);

}  // namespace tactus
