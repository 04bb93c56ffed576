// BLEU (Papineni et al. 2002) as sacreBLEU computes it: n-grams up to 4, clipped by the largest count over the
// references, the reference length closest to the hypothesis's (the shorter of two equally close), exponential
// smoothing of orders without a match (Chen and Cherry 2014, method 3).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "train/metrics/bleu_tokenizer.h"

namespace tactus {

inline constexpr int kBleuOrder = 4;

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  bool lowercase = false;
  /// Uses only the orders for which the hypothesis has n-grams. Off for a corpus; sentence_bleu turns it on, since a
  /// sentence of fewer than four tokens would score 0 without it.
  bool effective_order = false;
};

/// Sums over segments are all that a corpus score needs.
struct BleuStats {
  int64_t sys_len = 0;
  int64_t ref_len = 0;
  std::array<int64_t, kBleuOrder> correct{};
  std::array<int64_t, kBleuOrder> total{};

  BleuStats& operator+=(const BleuStats& other);
};

struct BleuScore {
  double score = 0;                             ///< 0..100
  std::array<double, kBleuOrder> precisions{};  ///< percent, smoothed; all 0 when nothing matches
  double brevity_penalty = 1;                   ///< 0..1
  BleuStats stats;
  std::string signature;

  /// "82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)"
  std::string detail() const;
};

/// One segment against at least one reference. Input must be valid UTF-8.
BleuStats bleu_stats(const std::string& hypothesis, const std::vector<std::string>& references,
                     const BleuOptions& options = {});

/// n_refs only enters the signature.
BleuScore bleu_from_stats(const BleuStats& stats, const BleuOptions& options = {}, int n_refs = 1);

/// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tactus"
std::string bleu_signature(const BleuOptions& options, int n_refs);

/// references[r][i] is the r-th reference of hypotheses[i]. Throws DataError when there is no segment, a set has another
/// number of lines than the hypotheses, or a line is not UTF-8.
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options = {});
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                      const BleuOptions& options = {});

/// Effective order is always on.
BleuScore sentence_bleu(const std::string& hypothesis, const std::vector<std::string>& references,
                        BleuOptions options = {});

}  // namespace tactus
