#pragma once

#include "core/parameters.h"
#include "train/loop/options.h"

namespace tactus {

/// Learning rate for n finished updates: linear from 0 to the peak over the warm-up, then inverse_sqrt (peak
/// sqrt(warmup / n), fairseq's), or linear or cosine decay that reaches 0 at `total` updates. Update number k (from 1)
/// uses n = k - 1, so the first one has rate 0.
double scheduled_rate(const OptimiserOptions& options, int64_t total, int64_t n);

/// Adam over the flat buffers of a store.
class Optimiser {
 public:
  /// `total_updates` is where decaying schedules end.
  Optimiser(const OptimiserOptions& options, ParameterStore& store, int64_t total_updates);
  /// Applies the accumulated gradients divided by `divisor` (target tokens), clipped, as update number `update` (from
  /// 1), and makes them zero. Does not wait for the device: *squared_norm becomes the sum of squares of the gradients
  /// before the division, and where that or *loss, both on the device, is not finite nothing else is changed. Returns
  /// the learning rate.
  double launch(int64_t update, double divisor, const double* loss, double* squared_norm);

  struct Result {
    double norm = 0;  ///< of the gradient, divided by `divisor`, before clipping
    double rate = 0;
    bool finite = true;  ///< false: nothing was changed
  };
  /// The same, with the host waiting for the result.
  Result step(int64_t update, double divisor);

  const Tensor& first_moment() const { return m_; }
  const Tensor& second_moment() const { return v_; }

 private:
  OptimiserOptions options_;
  int64_t total_updates_;
  ParameterStore& store_;
  Tensor m_, v_, coefficient_;
};

}  // namespace tactus
