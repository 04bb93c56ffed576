// The work on one split of a preparation.
#pragma once

#include "data/corpus/corpus_writer.h"
#include "data/prepare/feature_extractor.h"
#include "data/prepare/prepare.h"
#include "data/prepare/prepare_parts.h"

namespace tactus {

/// What all splits share.
struct PrepareJob {
  const PrepareOptions& options;
  CorpusWriter& writer;
  const FeatureExtractor* extractor;  ///< null for text
  PartStore parts;
  int threads = 1;
};

/// Reads, computes and writes one split. `first`: the training split, to which speeds, duration limits and the strict
/// half of `empty: auto` apply.
PreparedSplit prepare_split(const PrepareJob& job, const std::string& name, bool first);

}  // namespace tactus
