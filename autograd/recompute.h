#pragma once

#include "autograd/tape.h"

namespace tactus {

/// Activation checkpointing: runs f without remembering its inside, and runs it again on a tape of its own in backward.
/// Random masks are functions of their keys, so both runs are bitwise equal. Parameters used inside gather their
/// gradient as usual and count as used by this op, so their readiness hook fires once, after the last use inside or
/// outside.
std::vector<Var> recompute(Tape& tape, const std::vector<Var>& inputs,
                           std::function<std::vector<Var>(Tape&, const std::vector<Var>&)> f);

}  // namespace tactus
