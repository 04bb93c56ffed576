#pragma once

#include "autograd/tape.h"
#include "core/segments.h"

namespace tactus {

/// Latents of one key source and their fc_p projection. Undefined Vars where there is no prompt.
struct GateInput {
  Var c, p;
};
struct GateSum {
  Var prompt, own;  ///< running sums; prompt undefined where there is none
};

/// Gates and chunk running sums of kernels/attention/mtla.h over [prompt ; own]; code [chunks, h] = fc_c(PE).
GateSum gate_sum(Tape& tape, const GateInput& prompt, const GateInput& own, const Var& code,
                 const Segments* prompt_segments, const Segments& own_segments, int stride);

}  // namespace tactus
