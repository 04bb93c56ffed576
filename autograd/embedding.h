#pragma once

#include "autograd/tape.h"
#include "kernels/embedding.h"

namespace tactus {

/// scale * table[token]; [rows, width].
Var embedding(Tape& tape, const Var& table, const TokenIndex& tokens, double scale);

}  // namespace tactus
