// The configuration of a training run: everything that a YAML file may say.
#pragma once

#include "data/batches/batch_options.h"
#include "data/batches/specaugment.h"
#include "layers/models/speech_model.h"
#include "train/search/beam_search.h"

namespace tactus {

/// A corpus of a mixture.
struct MixOptions {
  std::string corpus;
  std::string split = "train";
  double weight = 1;
  void visit(ConfigVisitor& v);
};

struct DataOptions {
  std::string corpus;
  std::string train = "train", valid = "dev";
  std::vector<std::pair<std::string, MixOptions>> mix;  // empty: split `train` of `corpus`
  double temperature = 1;
  std::string cmvn = "utterance";
  std::string cmvn_stats;
  int64_t loader_threads = 2, prefetch = 4;
  BatchOptions batches;
  SpecAugmentOptions specaugment;
  void visit(ConfigVisitor& v);
};

struct OptimiserOptions {
  double learning_rate = 2e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  double clip_norm = 10;  // 0: off
  std::string schedule = "inverse_sqrt";
  int64_t warmup_updates = 10000;
  void visit(ConfigVisitor& v);
};

struct LoopOptions {
  int64_t max_updates = 100000;
  int64_t max_epochs = 0;  // 0: no limit
  int64_t accumulate = 1;
  int64_t log_every = 100;
  int64_t validate_every = 0;  // updates; 0: each epoch
  int64_t save_every = 0;      // updates; 0: at validation only
  int64_t keep_best = 10, keep_last = 2;
  std::string metric = "accuracy";
  int64_t patience = 0;      // validations without improvement; 0: off
  int64_t max_skipped = 10;  // consecutive non-finite updates
  void visit(ConfigVisitor& v);
};

struct RunOptions {
  std::string task = "speech_translation";
  int64_t seed = 1;
  std::string device = "auto";
  std::string dtype = "f32";
  int64_t threads = 0;
  DataOptions data;
  SpeechModelOptions model;
  double label_smoothing = 0.1;
  double ctc_weight = 0;
  std::string ctc_target = "source";
  OptimiserOptions optimiser;
  LoopOptions train;
  SearchOptions decode;
  void visit(ConfigVisitor& v);
};

}  // namespace tactus
