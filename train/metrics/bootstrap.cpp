#include "train/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

#include "core/error.h"

namespace tactus {
namespace {

Interval central_95(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const size_t cut = scores.size() / 40;
  return {scores[cut], scores[scores.size() - 1 - cut]};
}

}  // namespace

std::string PairedBootstrap::to_string() const {
  char numbers[256];
  std::snprintf(
      numbers, sizeof numbers,
      " %.2f [%.2f, %.2f] against %.2f [%.2f, %.2f]: %+.2f, p = %.4f (paired bootstrap, %d resamples, seed %llu)",
      system.value, system_interval.low, system_interval.high, against.value, against_interval.low,
      against_interval.high, system.value - against.value, p_value, resamples, static_cast<unsigned long long>(seed));
  return metric_label(system.name) + numbers;
}

PairedBootstrap paired_bootstrap(const std::string& name, const std::vector<std::string>& system,
                                 const std::vector<std::string>& against,
                                 const std::vector<std::vector<std::string>>& references, const MetricOptions& options,
                                 int resamples, uint64_t seed) {
  if (resamples < 1) {
    throw ConfigError("paired_bootstrap: resamples must be at least 1, got " + std::to_string(resamples));
  }
  const Metric& metric = find_metric(name);
  const std::vector<MetricStats> ours = segment_stats(metric, system, references, options);
  const std::vector<MetricStats> theirs = segment_stats(metric, against, references, options);

  PairedBootstrap result;
  result.system = compute_metric(name, system, references, options);
  result.against = compute_metric(name, against, references, options);
  result.resamples = resamples;
  result.seed = seed;

  std::mt19937_64 generator(seed);
  std::vector<double> our_scores, their_scores, gaps;
  for (int b = 0; b < resamples; ++b) {
    MetricStats our_sum{}, their_sum{};
    for (size_t draw = 0; draw < ours.size(); ++draw) {
      // The standard's uniform distribution differs between libraries; the remainder's bias is below n / 2^64.
      const size_t i = generator() % ours.size();
      add_stats(our_sum, ours[i]);
      add_stats(their_sum, theirs[i]);
    }
    our_scores.push_back(metric.value(our_sum, options));
    their_scores.push_back(metric.value(their_sum, options));
    gaps.push_back(our_scores.back() - their_scores.back());
  }
  const double mean_gap = std::accumulate(gaps.begin(), gaps.end(), 0.0) / resamples;
  const double real_gap = std::abs(result.system.value - result.against.value);
  // The tolerance keeps rounding from splitting ties, which are common on small sets.
  const auto extreme = std::count_if(
      gaps.begin(), gaps.end(), [&](double gap) { return std::abs(gap - mean_gap) >= real_gap * (1 - 1e-9) - 1e-9; });
  result.p_value = static_cast<double>(extreme + 1) / static_cast<double>(resamples + 1);
  result.system_interval = central_95(std::move(our_scores));
  result.against_interval = central_95(std::move(their_scores));
  return result;
}

PairedBootstrap paired_bootstrap(const std::string& metric, const std::vector<std::string>& system,
                                 const std::vector<std::string>& against, const std::vector<std::string>& references,
                                 const MetricOptions& options, int resamples, uint64_t seed) {
  return paired_bootstrap(metric, system, against, std::vector<std::vector<std::string>>{references}, options,
                          resamples, seed);
}

}  // namespace tactus
