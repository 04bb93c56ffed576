#pragma once

#include "autograd/tape.h"

namespace tactus {

/// What linear() does besides the product.
struct LinearOptions {
  bool relu = false;      ///< ReLU in the epilogue
  int64_t out_begin = 0;  ///< rows [out_begin, out_end) of the weight (and bias): part of a fused projection
  int64_t out_end = -1;   ///< -1: all rows
};

/// y [rows, out] = x weight^T (+ bias). x [rows, in] may be a column window; weight [out, in]; bias [out] or undefined.
Var linear(Tape& tape, const Slice& x, const Var& weight, const Var& bias, const LinearOptions& options = {});

}  // namespace tactus
