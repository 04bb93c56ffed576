// One training update as work for the device: nothing here waits for it but finish(), and that for the step before.
#pragma once

#include <cmath>

#include "core/transfer.h"
#include "kernels/step_sums.h"
#include "train/optimiser/optimiser.h"
#include "train/tasks/speech_task.h"

namespace tactus {

/// Use: add() once or more, then, when the step before was finished, launch(). finish() waits for what launch() gave.
class StepRunner {
 public:
  StepRunner(SpeechTask& task, Optimiser& optimiser);

  /// Forward and backward of one micro-batch. Takes the batch over: its features are copied while the device computes.
  /// `key` fixes all random masks.
  void add(Batch batch, uint64_t key);
  /// Target tokens and frames of the micro-batches added since the last launch.
  int64_t tokens() const { return now_.tokens; }
  int64_t frames() const { return now_.frames; }
  const std::vector<std::string>& ids() const { return now_.ids; }

  /// Clips and applies the gradients as update number `update` (from 1), divided by the tokens of all micro-batches.
  /// Gradients are zero afterwards.
  void launch(int64_t update) { launch(update, static_cast<double>(now_.tokens)); }
  void launch(int64_t update, double divisor);
  bool pending() const { return pending_; }

  struct Result {
    double sums[kStepSums] = {};
    int64_t tokens = 0, frames = 0, ctc_infeasible = 0;
    std::vector<std::string> ids;
    double rate = 0, norm = 0;  ///< learning rate; norm of the gradient, divided, before clipping
    bool loss_finite() const { return std::isfinite(sums[kSumLoss]); }
    /// False: nothing was changed.
    bool finite() const { return loss_finite() && std::isfinite(norm); }
  };
  Result finish();

 private:
  struct Counts {
    int64_t tokens = 0, frames = 0, ctc_infeasible = 0;
    std::vector<std::string> ids;
  };
  SpeechTask& task_;
  Optimiser& optimiser_;
  InputStream input_;
  Tensor sums_;  // f64 [kStepSums]
  Readback readback_;
  Counts now_, launched_;
  bool pending_ = false;
  double rate_ = 0, divisor_ = 1;
};

}  // namespace tactus
