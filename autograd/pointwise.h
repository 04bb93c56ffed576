#pragma once

#include "autograd/tape.h"
#include "core/segments.h"

namespace tactus {

/// Gated linear unit: [rows, 2c] -> [rows, c].
Var glu(Tape& tape, const Var& x);
Var relu(Tape& tape, const Var& x);
/// a + b of equal shapes.
Var add(Tape& tape, const Var& a, const Var& b);
Var scale(Tape& tape, const Var& x, double factor);
/// scale * x + table[row in sequence]; table [>= longest, cols] in acc type, no gradient.
Var scale_add_table(Tape& tape, const Var& x, double scale, const Tensor& table, const Segments& segments);
/// Sum of weights[i] * values[i] of one-element Vars of equal type: the total loss.
Var weighted_sum(Tape& tape, const std::vector<Var>& values, const std::vector<double>& weights);
/// Rows index[i] of x, in the order given, each at most once; `index` i32 on the device. Used to pick and to reorder
/// rows.
Var gather_rows(Tape& tape, const Var& x, const std::vector<int32_t>& index);

}  // namespace tactus
