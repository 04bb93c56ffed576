#pragma once

#include "autograd/tape.h"

namespace tactus {

/// Layers of each frame summed with weights softmax(logits): x [rows, layers x width], logits [layers] -> [rows,
/// width].
Var layer_mix(Tape& tape, const Var& x, const Var& logits);

}  // namespace tactus
