// Floating-point operations of a training step, counted from shapes: what model FLOP utilisation is measured by.
#pragma once

#include "data/batches/batch.h"
#include "layers/models/speech_model.h"

namespace tactus {

/// Multiply-adds (two operations each) of matrix products and attention for one batch, forward and backward. Attention
/// counts what a query may see; norms, activations and the optimiser count nothing, and neither does what backward
/// computes again.
double training_flops(const SpeechModelOptions& model, int64_t vocabulary, const Batch& batch);

}  // namespace tactus
