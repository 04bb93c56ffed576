// Checks of the arguments of autograd functions; the kernels check extents of matrices themselves.
#pragma once

#include "autograd/tape.h"

namespace tactus {

/// ShapeError "op: argument has shape ACTUAL, expected EXPECTED" unless `ok`.
inline void check_argument(bool ok, const char* op, const char* argument, const Var& actual,
                           const std::string& expected) {
  if (ok) return;
  throw ShapeError(std::string(op) + ": " + argument + " has shape " +
                   (actual.defined() ? actual.value().shape().to_string() : std::string("(undefined)")) +
                   ", expected " + expected);
}

/// The window must be non-empty columns of a defined Var with `cols` columns in all.
inline void check_columns(const char* op, const char* argument, const Slice& x, int64_t rows, int64_t cols) {
  const bool ok = x.defined() && x.begin >= 0 && x.end <= x.var.cols() && x.rows() == rows && x.cols() == cols;
  if (ok) return;
  throw ShapeError(std::string(op) + ": " + argument + " is columns [" + std::to_string(x.begin) + ", " +
                   std::to_string(x.end) + ") of " + (x.defined() ? x.var.value().shape().to_string() : "(undefined)") +
                   ", expected " + std::to_string(rows) + " rows of " + std::to_string(cols) + " columns");
}

}  // namespace tactus
