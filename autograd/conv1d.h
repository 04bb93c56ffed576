#pragma once

#include "autograd/tape.h"
#include "core/segments.h"
#include "kernels/conv1d.h"

namespace tactus {

/// Strided 1-D convolution of packed sequences: x [in.rows, channels], weight [out, kernel * channels] (tap-major),
/// bias [out]; `out` holds conv1d_length of every length. The unfolded input is recomputed in backward, not stored.
Var conv1d(Tape& tape, const Var& x, const Segments& in, const Segments& out, const Var& weight, const Var& bias,
           int kernel, int stride, int pad);

}  // namespace tactus
