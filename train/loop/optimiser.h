#pragma once

#include "core/parameters.h"
#include "train/loop/options.h"

namespace tactus {

/// fairseq's inverse_sqrt: linear from 0 to lr over `warmup` updates, then lr sqrt(warmup / n). Update number k (from
/// 1) uses n = k - 1, so the first one has rate 0.
double inverse_sqrt_rate(double learning_rate, int64_t warmup, int64_t n);

/// Adam over the flat buffers of a store.
class Optimiser {
 public:
  Optimiser(const OptimiserOptions& options, ParameterStore& store);
  struct Result {
    double norm = 0;  ///< of the gradient, divided by `divisor`, before clipping
    double rate = 0;
    bool finite = true;  ///< false: nothing was changed
  };
  /// Update number `update` (from 1) with the accumulated gradients divided by `divisor` (target tokens).
  Result step(int64_t update, double divisor);

  const Tensor& first_moment() const { return m_; }
  const Tensor& second_moment() const { return v_; }

 private:
  OptimiserOptions options_;
  ParameterStore& store_;
  Tensor m_, v_;
};

}  // namespace tactus
