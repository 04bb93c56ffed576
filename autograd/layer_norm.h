#pragma once

#include "autograd/tape.h"

namespace tactus {

/// Layer normalisation over the columns of x (a window is allowed); gamma, beta [cols].
Var layer_norm(Tape& tape, const Slice& x, const Var& gamma, const Var& beta, double eps);

}  // namespace tactus
