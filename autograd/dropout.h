#pragma once

#include "autograd/tape.h"
#include "core/rng.h"
#include "core/segments.h"

namespace tactus {

/// dropout(x) + residual (undefined: none). Segments matter, and may be empty otherwise, only where dropout is on.
Var dropout_add(Tape& tape, const Var& x, const Var& residual, DropoutKey key, const Segments& segments);
/// dropout(max(0, x)).
Var relu_dropout(Tape& tape, const Var& x, DropoutKey key, const Segments& segments);

}  // namespace tactus
