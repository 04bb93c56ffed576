// The speech-to-text task: what a run's configuration names. Builds the model for a corpus, puts host batches on the
// device, computes losses.
#pragma once

#include "core/comm/comm.h"
#include "core/transfer.h"
#include "data/batches/batch_loader.h"
#include "layers/models/speech_model.h"
#include "train/checkpoint/model_file.h"
#include "train/loop/options.h"

namespace tactus {

/// The device that options ask for; "auto" takes a GPU where there is one. `memory_limit` in bytes, 0: none.
Context make_context(const std::string& device, int64_t threads, int64_t memory_limit = 0);

struct Vocabularies {
  int64_t target = 0, ctc = 0;  ///< ctc 0: no CTC loss
};
/// Sizes of the output vocabularies for a corpus. ConfigError when the corpus cannot train the model that the options
/// describe: other feature bins, or no source tokenizer where CTC wants one.
Vocabularies vocabularies_of(const RunOptions& options, const Corpus& corpus);

/// Model and weights with what they were made for.
class SpeechTask {
 public:
  /// Weights allocated but not drawn.
  SpeechTask(const Context& ctx, const RunOptions& options, int64_t vocabulary, int64_t ctc_vocabulary, bool training);

  const Context& ctx() const { return ctx_; }
  const RunOptions& options() const { return options_; }
  ParameterStore& store() { return store_; }
  const SpeechModel& model() const { return model_; }
  Tables& tables() { return tables_; }
  DType compute_type() const { return store_.compute_type(); }

  /// Features alone, for decoding: [frames, bins] in the compute type, which must be that of the batch.
  Tensor features_to_device(const Batch& batch) const;
  SpeechBatch to_device(const Batch& batch) const;
  /// The same without a wait: the batch's features are taken over and copied beside the device's work.
  SpeechBatch to_device(Batch& batch, InputStream& input) const;
  /// Loss of one batch on a tape; `key` fixes all random masks.
  SpeechLoss loss(Tape& tape, const SpeechBatch& batch, bool training, uint64_t key);

 private:
  void check_type(const Batch& batch) const;
  SpeechBatch text_to_device(const Batch& batch) const;
  Context ctx_;
  RunOptions options_;
  ParameterStore store_;
  SpeechModel model_;
  Tables tables_;
};

}  // namespace tactus
