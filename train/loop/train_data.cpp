#include "train/loop/train_data.h"

#include "core/process/log.h"

namespace tactus {
namespace {

/// Why batches of `other` cannot be mixed with those of `corpus`, or "".
std::string difference(const Corpus& corpus, const Corpus& other) {
  const auto differ = [](const char* what, const std::string& a, const std::string& b) {
    return std::string(what) + " (" + b + " and " + a + ")";
  };
  if (other.feature_hash() != corpus.feature_hash())
    return differ("features", corpus.feature_hash(), other.feature_hash());
  if (other.target_tokenizer().hash() != corpus.target_tokenizer().hash())
    return differ("target tokenizers", corpus.target_tokenizer().hash(), other.target_tokenizer().hash());
  const auto source_hash = [](const Corpus& c) { return c.source_tokenizer() ? c.source_tokenizer()->hash() : "none"; };
  if (source_hash(other) != source_hash(corpus))
    return differ("source tokenizers", source_hash(corpus), source_hash(other));
  return "";
}

std::vector<TrainingPart> training_parts(Corpus& corpus, const DataOptions& data) {
  if (data.mix.empty()) return {{data.train, corpus.split(data.train), 1}};
  std::vector<TrainingPart> parts;
  for (const auto& [name, part] : data.mix) {
    Corpus other = Corpus::open(part.corpus);
    if (const std::string what = difference(corpus, other); !what.empty()) {
      throw ConfigError("data.mix." + name + ": " + other.path() + " and " + corpus.path() + " have different " + what +
                        "; prepare them with the same recipe and tokenizer files");
    }
    parts.push_back({name, other.split(part.split), part.weight});
  }
  return parts;
}

/// Statistics for global normalisation.
FeatureMoments statistics_of(const Corpus& corpus, const DataOptions& data, const std::vector<TrainingPart>& parts) {
  if (!data.cmvn_stats.empty()) {
    return read_statistics(data.cmvn_stats, corpus.feature_hash(), corpus.features().frame_width());
  }
  std::vector<const FeatureMoments*> moments;
  for (const TrainingPart& part : parts) moments.push_back(&part.split->moments());
  return pooled(moments);
}

void warn_floored(const std::vector<int64_t>& bins, const std::string& where) {
  if (bins.empty()) return;
  std::string list;
  for (size_t i = 0; i < bins.size() && i < 5; ++i) list += (i ? ", " : "") + std::to_string(bins[i]);
  warn(where + ": " + std::to_string(bins.size()) + " bins have no variance and are only centred: " + list +
       (bins.size() > 5 ? ", ..." : ""));
}

}  // namespace

Normaliser make_normaliser(const std::string& cmvn, const std::optional<FeatureMoments>& statistics,
                           const std::string& where) {
  const Cmvn kind = cmvn_from_string(cmvn);
  if (kind != Cmvn::global) return Normaliser(kind);
  if (!statistics) throw DataError(where + ": holds no statistics for data.cmvn: global");
  return Normaliser::global(*statistics, where);
}

BatchContents evaluation_contents(const Corpus& corpus, const Normaliser& normaliser, DType dtype) {
  BatchContents contents;
  contents.normaliser = normaliser;
  contents.layers = corpus.features().kind == "stored" ? corpus.features().layers : 1;
  contents.dtype = dtype;
  return contents;
}

TrainData TrainData::open(const DataOptions& data, uint64_t seed) {
  if (!data.cmvn_stats.empty() && data.cmvn != "global") {
    throw ConfigError("data.cmvn_stats is for data.cmvn: global, which is " + data.cmvn);
  }
  if (data.mix.empty() && data.temperature != 1) throw ConfigError("data.temperature is for a data.mix, there is none");
  Corpus corpus = Corpus::open(data.corpus);
  auto valid = corpus.split(data.valid);
  std::vector<TrainingPart> parts = training_parts(corpus, data);
  std::optional<FeatureMoments> statistics;
  if (data.cmvn == "global") statistics = statistics_of(corpus, data, parts);
  const std::string where = data.cmvn_stats.empty() ? data.corpus : data.cmvn_stats;
  Normaliser normaliser = make_normaliser(data.cmvn, statistics, where);
  warn_floored(normaliser.floored(), where);
  BatchPlan plan = BatchPlan::for_mixture(parts, data.batches, data.temperature, seed);
  BatchPlan valid_plan = BatchPlan::for_evaluation(valid, data.batches);
  return {std::move(corpus),     std::move(valid),      std::move(parts),     std::move(plan),
          std::move(valid_plan), std::move(normaliser), std::move(statistics)};
}

}  // namespace tactus
