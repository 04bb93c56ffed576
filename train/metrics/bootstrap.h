// Paired bootstrap resampling (Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation"): draws
// whole test sets with replacement, the same segments for both systems, and looks at how the difference varies.
//
// The p-value is two-sided, from the resampled differences shifted to the null hypothesis of no difference: with d_b =
// system - against on resample b and d on the real test set, p = (1 + #{b : |d_b - mean(d_b)| >= |d|}) / (1 +
// resamples). So equal systems get p = 1. (Tools that centre |d_b| instead of d_b report about half of this for clear
// differences.) The intervals are the central 95% of each system's own resampled scores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/metrics/metric.h"

namespace tactus {

struct Interval {
  double low = 0;
  double high = 0;
};

struct PairedBootstrap {
  MetricScore system;
  MetricScore against;
  Interval system_interval;  ///< percent, as the scores
  Interval against_interval;
  double p_value = 1;
  int resamples = 0;
  uint64_t seed = 0;

  /// "BLEU 34.72 [31.02, 38.11] against 33.10 [29.80, 36.55]: +1.62, p = 0.0430 (paired bootstrap, 1000 resamples, seed
  /// 12345)", on one line
  std::string to_string() const;
};

/// Any known metric. Deterministic in its arguments. Throws as compute_metric does, and ConfigError for resamples < 1.
PairedBootstrap paired_bootstrap(const std::string& metric, const std::vector<std::string>& system,
                                 const std::vector<std::string>& against,
                                 const std::vector<std::vector<std::string>>& references,
                                 const MetricOptions& options = {}, int resamples = 1000, uint64_t seed = 12345);
PairedBootstrap paired_bootstrap(const std::string& metric, const std::vector<std::string>& system,
                                 const std::vector<std::string>& against, const std::vector<std::string>& references,
                                 const MetricOptions& options = {}, int resamples = 1000, uint64_t seed = 12345);

}  // namespace tactus
