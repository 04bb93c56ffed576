// Inverted dropout with counter-based masks (core/rng.h): decision (utterance, row in sequence, head 0, column).
#pragma once

#include "core/context.h"
#include "core/rng.h"
#include "core/segments.h"

namespace tactus {

/// y = dropout(x) + residual. residual.ptr null: none. key.p = 0: plain sum or copy. y may be x or residual.
/// The backward pass is the same call on dy without a residual.
template <class D, class T>
void dropout_add(const Context& ctx, Mat<const T> x, Mat<const T> residual, DropoutKey key, SegmentsView segments,
                 Mat<T> y);

/// y = dropout(max(0, x)). y may be x. NaN stays NaN where kept.
template <class D, class T>
void relu_dropout_forward(const Context& ctx, Mat<const T> x, DropoutKey key, SegmentsView segments, Mat<T> y);
/// dx = y > 0 ? dy * key.scale() : 0; the stored output carries the mask. With p = 0 the scale is 1. dx may be dy.
template <class D, class T>
void relu_dropout_backward(const Context& ctx, Mat<const T> dy, Mat<const T> y, DropoutKey key, Mat<T> dx);

}  // namespace tactus
