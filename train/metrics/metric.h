// All text metrics under their names. A metric is a sum of per-segment statistics and a function of the sum, so corpus
// scores and bootstrap resamples come from the same few lines.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/metrics/bleu.h"

namespace tactus {

struct MetricOptions {
  BleuOptions bleu;  ///< read by bleu only; the other metrics have no options
};

struct MetricScore {
  std::string name;
  /// Percent for every metric: BLEU 0..100, error rates from 0 without an upper end, accuracies 0..100.
  double value = 0;
  bool higher_is_better = true;
  std::string signature;  ///< what makes the number reproducible
  std::string detail;     ///< precisions and lengths, edit counts, or hits

  /// "BLEU|nrefs:1|... = 34.72 66.7/... (BP = ...)": upper-case name, signature, two decimals, detail
  std::string to_string() const;
};

using MetricStats = std::array<int64_t, 2 + 2 * kBleuOrder>;  ///< a shorter metric leaves the rest 0

struct Metric {
  const char* name;
  bool higher_is_better;
  bool multiple_references;
  MetricStats (*segment)(const std::string& hypothesis, const std::vector<std::string>& references,
                         const MetricOptions& options);
  double (*value)(const MetricStats& sum, const MetricOptions& options);
  std::string (*signature)(const MetricOptions& options, int n_refs);
  std::string (*detail)(const MetricStats& sum, const MetricOptions& options);
};

void add_stats(MetricStats& sum, const MetricStats& stats);

/// "bleu" -> "BLEU"
std::string metric_label(std::string name);

/// bleu, wer, cer, accuracy, first_token_accuracy
std::span<const Metric> all_metrics();
std::vector<std::string> metric_names();

/// Throws ConfigError that names the nearest and all known names.
const Metric& find_metric(const std::string& name);

/// "bleu,wer" -> {"bleu", "wer"}, each checked by find_metric; blanks around names are ignored. An empty or repeated
/// name is a ConfigError.
std::vector<std::string> parse_metric_names(const std::string& list);

/// Statistics of each segment. references[r][i] is the r-th reference of hypotheses[i]; several sets are a ConfigError
/// for metrics that take one. Throws DataError on unequal numbers of lines, no lines, or invalid UTF-8.
std::vector<MetricStats> segment_stats(const Metric& metric, const std::vector<std::string>& hypotheses,
                                       const std::vector<std::vector<std::string>>& references,
                                       const MetricOptions& options);

MetricScore compute_metric(const std::string& name, const std::vector<std::string>& hypotheses,
                           const std::vector<std::vector<std::string>>& references, const MetricOptions& options = {});
MetricScore compute_metric(const std::string& name, const std::vector<std::string>& hypotheses,
                           const std::vector<std::string>& references, const MetricOptions& options = {});

}  // namespace tactus
