// The training loop.
#pragma once

#include <memory>
#include <string>

#include "train/loop/checkpoint.h"
#include "train/loop/run_log.h"
#include "train/loop/speech_task.h"

namespace tactus {

struct TrainResult {
  double best_metric = 0;
  int64_t best_update = 0;
  std::string best_checkpoint;
  int64_t updates = 0, epochs = 0;
  double seconds = 0, frames_per_second = 0;
  MemoryUse memory;
  bool stopped = false;  ///< by a signal, after saving
};

/// What `--resume` says.
struct ResumeOptions {
  enum class Kind { automatic, none, folder } kind = Kind::automatic;
  std::string folder;  ///< a checkpoint folder of the same run shape
};

class Trainer {
 public:
  /// Creates the run folder, writes config.yaml and opens the corpus. With Kind::none an existing run with checkpoints
  /// is a ConfigError.
  Trainer(const RunOptions& options, const std::string& run, const ResumeOptions& resume);
  ~Trainer();
  TrainResult run();

  struct Validation {
    double nll = 0, accuracy = 0;
  };
  /// Loss per token and token accuracy of the validation split.
  Validation validate();

 private:
  void resume(const ResumeOptions& resume);
  /// One update from `accumulate` batches, fewer at the end of an epoch. True when it took the last batch of its epoch.
  bool update();
  void add_batch(const Batch& batch, uint64_t key, LogSums& sums);
  void skip_update(const std::string& reason, const std::vector<std::string>& ids);
  void after_update(bool epoch_ended);
  void validate_and_save();
  void save();
  void log_line();
  void live_line() const;
  bool finished() const;

  RunOptions options_;
  std::string run_;
  Context ctx_;
  std::unique_ptr<Comm> comm_;
  Corpus corpus_;
  std::shared_ptr<const CorpusSplit> train_split_, valid_split_;
  BatchPlan plan_, valid_plan_;
  BatchContents contents_;
  std::unique_ptr<SpeechTask> task_;
  std::unique_ptr<Optimiser> optimiser_;
  CheckpointFolder checkpoints_;
  ModelInfo info_;
  TrainState state_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<BatchLoader> loader_;
  int64_t saved_update_ = -1;
  double last_rate_ = 0, last_norm_ = 0;
  double start_seconds_ = 0, line_seconds_ = 0;
  int64_t frames_done_ = 0, line_frames_ = 0, updates_done_ = 0;
};

}  // namespace tactus
