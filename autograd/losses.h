#pragma once

#include "autograd/tape.h"
#include "core/segments.h"
#include "kernels/ctc.h"

namespace tactus {

/// Sums over rows; tensors of one element in acc type on the device, `correct` [rows] i32.
struct CrossEntropy {
  Var loss;        ///< label-smoothed, summed over rows
  Tensor nll;      ///< plain negative log-likelihood, summed
  Tensor correct;  ///< 1 for each row whose target is the largest logit
};

/// targets i32 [rows] on the device, -1 = no loss. row_weight acc type [rows] or undefined.
CrossEntropy cross_entropy(Tape& tape, const Var& logits, const Tensor& targets, double smoothing,
                           const Tensor& row_weight = {});

/// Sum over utterances of the CTC loss (kernels/ctc.h); labels i32 packed by `targets`.
struct CtcLoss {
  Var loss;
  Tensor per_utterance;  ///< acc type [count]
};
CtcLoss ctc_loss(Tape& tape, const Var& logits, const Segments& frames, const Segments& targets, const Tensor& labels,
                 int blank, bool zero_infinity);

}  // namespace tactus
