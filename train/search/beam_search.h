// Batched beam search through a decoder's prefill, step and reorder; greedy decoding is beam 1.
//
// fairseq's rules, as the paper's numbers were made: each step takes the 2 x beam best continuations of an utterance;
// an eos among the first `beam` of them finishes a hypothesis with score total / length^lenpen (length includes eos),
// the first `beam` others go on. An utterance ends with `beam` finished hypotheses, or at its longest length, where
// only eos is allowed; finished ones leave the batch.
#pragma once

#include <functional>
#include <vector>

#include "core/config/config.h"
#include "layers/models/decoder.h"

namespace tactus {

struct SearchOptions {
  int64_t beam = 5;
  double length_penalty = 1;
  double temperature = 1;
  int64_t min_length = 1;
  double max_length_ratio = 0;  ///< longest output = ratio * source rows + max_length
  int64_t max_length = 200;
  void visit(ConfigVisitor& v);
};

struct Hypothesis {
  std::vector<int32_t> tokens;  ///< ends with eos
  std::vector<double> scores;   ///< log-probability of each token
  double score = 0;             ///< length-normalised
};

struct SearchVocabulary {
  int32_t start = 2, eos = 2, pad = 1;
};

/// Memory of the caches at their fullest, for reports.
struct SearchMemory {
  int64_t payload = 0, payload_unshared = 0, reserved = 0;
};

/// Hypotheses of each utterance, best first (at most `beam`, at least one). prompt rows of all utterances;
/// source_lengths in source rows (frames), for max_length_ratio. `stop` is polled between steps and ends the search
/// with Error when true.
std::vector<std::vector<Hypothesis>> beam_search(const PromptDecoder& decoder, Pass& pass, const Var& prompt,
                                                 const Segments& segments, const std::vector<int64_t>& source_lengths,
                                                 const SearchOptions& options, const SearchVocabulary& vocabulary,
                                                 SearchMemory* memory = nullptr,
                                                 const std::function<bool()>& stop = {});

}  // namespace tactus
