#include "train/metrics/metric.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "train/metrics/accuracy.h"
#include "train/metrics/parallel.h"
#include "train/metrics/wer.h"

namespace tactus {
namespace {

using Lines = std::vector<std::string>;

MetricStats pack(const BleuStats& bleu) {
  MetricStats out{bleu.sys_len, bleu.ref_len};
  std::copy(bleu.correct.begin(), bleu.correct.end(), out.begin() + 2);
  std::copy(bleu.total.begin(), bleu.total.end(), out.begin() + 2 + kBleuOrder);
  return out;
}

BleuScore bleu_score(const MetricStats& sum, const MetricOptions& options) {
  BleuStats bleu;
  bleu.sys_len = sum[0];
  bleu.ref_len = sum[1];
  std::copy_n(sum.begin() + 2, kBleuOrder, bleu.correct.begin());
  std::copy_n(sum.begin() + 2 + kBleuOrder, kBleuOrder, bleu.total.begin());
  return bleu_from_stats(bleu, options.bleu);
}

MetricStats pack(const EditCounts& edits) {
  return {edits.hits, edits.substitutions, edits.deletions, edits.insertions};
}

EditCounts edit_counts(const MetricStats& sum) { return {sum[0], sum[1], sum[2], sum[3]}; }

double error_rate(const MetricStats& sum, const MetricOptions&) { return 100.0 * edit_counts(sum).rate(); }
double accuracy(const MetricStats& sum, const MetricOptions&) {
  return 100.0 * AccuracyCounts{sum[0], sum[1]}.fraction();
}
std::string accuracy_detail(const MetricStats& sum, const MetricOptions&) {
  return AccuracyCounts{sum[0], sum[1]}.detail();
}

constexpr Metric kMetrics[] = {
    {"bleu", true, true,
     [](const std::string& hyp, const Lines& refs, const MetricOptions& o) {
       return pack(bleu_stats(hyp, refs, o.bleu));
     },
     [](const MetricStats& sum, const MetricOptions& o) { return bleu_score(sum, o).score; },
     [](const MetricOptions& o, int n_refs) { return bleu_signature(o.bleu, n_refs); },
     [](const MetricStats& sum, const MetricOptions& o) { return bleu_score(sum, o).detail(); }},
    {"wer", false, false,
     [](const std::string& hyp, const Lines& refs, const MetricOptions&) { return pack(word_edits(hyp, refs[0])); },
     error_rate, [](const MetricOptions&, int) { return std::string(kWerSignature); },
     [](const MetricStats& sum, const MetricOptions&) { return edit_counts(sum).detail("words"); }},
    {"cer", false, false,
     [](const std::string& hyp, const Lines& refs, const MetricOptions&) {
       return pack(character_edits(hyp, refs[0]));
     },
     error_rate, [](const MetricOptions&, int) { return std::string(kCerSignature); },
     [](const MetricStats& sum, const MetricOptions&) { return edit_counts(sum).detail("characters"); }},
    {"accuracy", true, false,
     [](const std::string& hyp, const Lines& refs, const MetricOptions&) {
       return MetricStats{exact_match(hyp, refs[0]) ? 1 : 0, 1};
     },
     accuracy, [](const MetricOptions&, int) { return std::string(kExactMatchSignature); }, accuracy_detail},
    {"first_token_accuracy", true, false,
     [](const std::string& hyp, const Lines& refs, const MetricOptions&) {
       return MetricStats{first_token_match(hyp, refs[0]) ? 1 : 0, 1};
     },
     accuracy, [](const MetricOptions&, int) { return std::string(kFirstTokenSignature); }, accuracy_detail},
};

std::string join(const Lines& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

std::string MetricScore::to_string() const {
  char number[64];
  std::snprintf(number, sizeof number, "%.2f", value);
  return metric_label(name) + "|" + signature + " = " + number + " " + detail;
}

std::string metric_label(std::string name) {
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return name;
}

void add_stats(MetricStats& sum, const MetricStats& stats) {
  for (size_t k = 0; k < sum.size(); ++k) sum[k] += stats[k];
}

std::span<const Metric> all_metrics() { return kMetrics; }

std::vector<std::string> metric_names() {
  Lines names;
  for (const Metric& metric : kMetrics) names.emplace_back(metric.name);
  return names;
}

const Metric& find_metric(const std::string& name) {
  for (const Metric& metric : kMetrics) {
    if (name == metric.name) return metric;
  }
  const Lines known = metric_names();
  const std::string nearest = nearest_name(name, known.data(), static_cast<int>(known.size()));
  throw ConfigError("unknown metric '" + name + "'" + (nearest.empty() ? "" : "; nearest: " + nearest) +
                    "; known: " + join(known));
}

std::vector<std::string> parse_metric_names(const std::string& list) {
  Lines names;
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find(',', start), list.size());
    std::string_view part = std::string_view(list).substr(start, end - start);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const std::string name(part);
    if (name.empty()) {
      throw ConfigError("empty metric name in '" + list + "'; known: " + join(metric_names()));
    }
    find_metric(name);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw ConfigError("metric '" + name + "' is named twice in '" + list + "'");
    }
    names.push_back(name);
    start = end + 1;
  }
  return names;
}

std::vector<MetricStats> segment_stats(const Metric& metric, const std::vector<std::string>& hypotheses,
                                       const std::vector<std::vector<std::string>>& references,
                                       const MetricOptions& options) {
  check_parallel(metric.name, hypotheses, references);
  if (references.size() > 1 && !metric.multiple_references) {
    throw ConfigError(std::string(metric.name) + " takes one set of references, got " +
                      std::to_string(references.size()));
  }
  std::vector<MetricStats> stats;
  Lines refs(references.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    for (size_t r = 0; r < refs.size(); ++r) refs[r] = references[r][i];
    stats.push_back(metric.segment(hypotheses[i], refs, options));
  }
  return stats;
}

MetricScore compute_metric(const std::string& name, const std::vector<std::string>& hypotheses,
                           const std::vector<std::vector<std::string>>& references, const MetricOptions& options) {
  const Metric& metric = find_metric(name);
  MetricStats sum{};
  for (const MetricStats& stats : segment_stats(metric, hypotheses, references, options)) {
    add_stats(sum, stats);
  }
  return {metric.name, metric.value(sum, options), metric.higher_is_better,
          metric.signature(options, static_cast<int>(references.size())), metric.detail(sum, options)};
}

MetricScore compute_metric(const std::string& name, const std::vector<std::string>& hypotheses,
                           const std::vector<std::string>& references, const MetricOptions& options) {
  return compute_metric(name, hypotheses, std::vector<std::vector<std::string>>{references}, options);
}

}  // namespace tactus
