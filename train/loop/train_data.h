// The data of a run: opened, checked, planned.
#pragma once

#include <memory>
#include <optional>

#include "data/batches/batch_loader.h"
#include "train/loop/options.h"

namespace tactus {

/// What training reads.
struct TrainData {
  Corpus corpus;  ///< tokenizers, validation
  std::shared_ptr<const CorpusSplit> valid;
  std::vector<TrainingPart> parts;
  BatchPlan plan, valid_plan;
  Normaliser normaliser;
  std::optional<FeatureMoments> statistics;  ///< of global normalisation

  /// Opens what `data` names; bins without variance are warned of. ConfigError naming both corpora when those of a
  /// mixture differ in features or tokenizers; DataError for statistics of other features.
  static TrainData open(const DataOptions& data, uint64_t seed);
};

/// The normalisation that `cmvn` names; `statistics` as stored in `where`. DataError when they are missing.
Normaliser make_normaliser(const std::string& cmvn, const std::optional<FeatureMoments>& statistics,
                           const std::string& where);

/// What evaluation does to batches of `corpus`; training adds to it.
BatchContents evaluation_contents(const Corpus& corpus, const Normaliser& normaliser, DType dtype);

}  // namespace tactus
