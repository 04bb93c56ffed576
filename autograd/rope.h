#pragma once

#include "autograd/tape.h"

namespace tactus {

/// Copy of the window x with, for each of `heads` groups of `head_stride` columns, the columns [offset, offset + dim)
/// rotated; positions i32 [rows] on the device; table of kernels/rope.h.
Var rope(Tape& tape, const Slice& x, int heads, int64_t head_stride, int64_t offset, int64_t dim,
         const Tensor& positions, const Tensor& table);

}  // namespace tactus
