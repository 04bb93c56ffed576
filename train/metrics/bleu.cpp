#include "train/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "core/error.h"
#include "train/metrics/parallel.h"
#include "train/metrics/text.h"

namespace tactus {
namespace {

using Tokens = std::vector<uint32_t>;
using Ngram = std::array<uint32_t, kBleuOrder>;  // orders below 4 leave the rest 0
using NgramCounts = std::vector<std::pair<Ngram, int64_t>>;

// Gives equal tokens of one segment and its references equal numbers, from 1.
class Vocabulary {
 public:
  Tokens encode(const std::string& segment, const BleuOptions& options) {
    Tokens ids;
    for (std::string& token :
         bleu_tokenize(options.lowercase ? text::lowercase(segment) : segment, options.tokenizer)) {
      ids.push_back(ids_.try_emplace(std::move(token), static_cast<uint32_t>(ids_.size() + 1)).first->second);
    }
    return ids;
  }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
};

// Sorted by n-gram.
NgramCounts count_ngrams(const Tokens& tokens, int order) {
  std::vector<Ngram> all;
  for (size_t i = 0; i + order <= tokens.size(); ++i) {
    Ngram& ngram = all.emplace_back(Ngram{});
    std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(i), order, ngram.begin());
  }
  std::sort(all.begin(), all.end());
  NgramCounts counts;
  for (const Ngram& ngram : all) {
    if (counts.empty() || counts.back().first != ngram) counts.emplace_back(ngram, 0);
    ++counts.back().second;
  }
  return counts;
}

int64_t count_of(const NgramCounts& counts, const Ngram& ngram) {
  const auto it = std::lower_bound(counts.begin(), counts.end(), ngram,
                                   [](const auto& entry, const Ngram& key) { return entry.first < key; });
  return it != counts.end() && it->first == ngram ? it->second : 0;
}

int64_t closest_length(int64_t length, const std::vector<Tokens>& references) {
  int64_t best = -1;
  for (const Tokens& reference : references) {
    const auto candidate = static_cast<int64_t>(reference.size());
    const int64_t gap = std::abs(candidate - length), best_gap = std::abs(best - length);
    if (best < 0 || gap < best_gap || (gap == best_gap && candidate < best)) best = candidate;
  }
  return best;
}

}  // namespace

BleuStats& BleuStats::operator+=(const BleuStats& other) {
  sys_len += other.sys_len;
  ref_len += other.ref_len;
  for (int n = 0; n < kBleuOrder; ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  return *this;
}

std::string BleuScore::detail() const {
  const double ratio =
      stats.ref_len > 0 ? static_cast<double>(stats.sys_len) / static_cast<double>(stats.ref_len) : 0.0;
  char line[160];
  std::snprintf(line, sizeof line, "%.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)",
                precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio,
                static_cast<long long>(stats.sys_len), static_cast<long long>(stats.ref_len));
  return line;
}

BleuStats bleu_stats(const std::string& hypothesis, const std::vector<std::string>& references,
                     const BleuOptions& options) {
  if (references.empty()) throw DataError("bleu: a segment needs at least one reference, got none");
  Vocabulary vocabulary;
  const Tokens hyp = vocabulary.encode(hypothesis, options);
  std::vector<Tokens> refs;
  for (const std::string& reference : references) refs.push_back(vocabulary.encode(reference, options));

  BleuStats stats;
  stats.sys_len = static_cast<int64_t>(hyp.size());
  stats.ref_len = closest_length(stats.sys_len, refs);
  for (int order = 1; order <= kBleuOrder; ++order) {
    std::vector<NgramCounts> ref_counts;
    for (const Tokens& ref : refs) ref_counts.push_back(count_ngrams(ref, order));
    for (const auto& [ngram, count] : count_ngrams(hyp, order)) {
      int64_t allowed = 0;
      for (const NgramCounts& counts : ref_counts) allowed = std::max(allowed, count_of(counts, ngram));
      stats.correct[order - 1] += std::min(count, allowed);
      stats.total[order - 1] += count;
    }
  }
  return stats;
}

BleuScore bleu_from_stats(const BleuStats& stats, const BleuOptions& options, int n_refs) {
  BleuScore result;
  result.stats = stats;
  result.signature = bleu_signature(options, n_refs);
  if (stats.sys_len < stats.ref_len) {
    result.brevity_penalty =
        stats.sys_len > 0 ? std::exp(1.0 - static_cast<double>(stats.ref_len) / static_cast<double>(stats.sys_len)) : 0;
  }
  if (std::all_of(stats.correct.begin(), stats.correct.end(), [](int64_t c) { return c == 0; })) return result;

  // Each further order without a match is worth half of the one before it.
  double smoothing = 1.0, log_sum = 0.0;
  int orders = 0;
  for (; orders < kBleuOrder && stats.total[orders] > 0; ++orders) {
    const auto total = static_cast<double>(stats.total[orders]);
    if (stats.correct[orders] == 0) smoothing *= 2.0;
    const double correct = stats.correct[orders] == 0 ? 1.0 / smoothing : static_cast<double>(stats.correct[orders]);
    result.precisions[orders] = 100.0 * correct / total;
    log_sum += std::log(result.precisions[orders]);
  }
  if (orders == kBleuOrder || options.effective_order) {
    result.score = result.brevity_penalty * std::exp(log_sum / orders);
  }
  return result;
}

std::string bleu_signature(const BleuOptions& options, int n_refs) {
  return "nrefs:" + std::to_string(n_refs) + "|case:" + (options.lowercase ? "lc" : "mixed") +
         "|eff:" + (options.effective_order ? "yes" : "no") + "|tok:" + bleu_tokenizer_name(options.tokenizer) +
         "|smooth:exp|version:tactus";
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  check_parallel("bleu", hypotheses, references);
  BleuStats stats;
  std::vector<std::string> segment_refs(references.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r) segment_refs[r] = references[r][i];
    stats += bleu_stats(hypotheses[i], segment_refs, options);
  }
  return bleu_from_stats(stats, options, static_cast<int>(references.size()));
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                      const BleuOptions& options) {
  return corpus_bleu(hypotheses, std::vector<std::vector<std::string>>{references}, options);
}

BleuScore sentence_bleu(const std::string& hypothesis, const std::vector<std::string>& references,
                        BleuOptions options) {
  text::check_utf8(hypothesis, "bleu: hypothesis");
  for (const std::string& reference : references) text::check_utf8(reference, "bleu: reference");
  options.effective_order = true;
  return bleu_from_stats(bleu_stats(hypothesis, references, options), options, static_cast<int>(references.size()));
}

}  // namespace tactus
