// The training loop.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "train/checkpoint/checkpoint.h"
#include "train/loop/run_log.h"
#include "train/loop/step_runner.h"
#include "train/loop/train_data.h"
#include "train/tasks/speech_task.h"

namespace tactus {

struct TrainResult {
  double best_metric = 0;
  int64_t best_update = 0;
  std::string best_checkpoint;
  int64_t updates = 0, epochs = 0;
  double seconds = 0, frames_per_second = 0;  ///< of the whole run, earlier parts of a resumed one included
  MemoryUse memory;
  bool stopped = false;  ///< by a signal before the end, after saving
};

/// What `--resume` says.
struct ResumeOptions {
  enum class Kind { automatic, none, folder } kind = Kind::automatic;
  std::string folder;        ///< a checkpoint folder of the same run shape
  bool same_config = false;  ///< refuse to go on under another configuration (else: warn)
};

class Trainer {
 public:
  /// Creates the run folder, writes config.yaml and opens the corpus. ConfigError when the run folder holds checkpoints
  /// that would get in the way: any with Kind::none, those of later updates with Kind::folder.
  Trainer(const RunOptions& options, const std::string& run, const ResumeOptions& resume);
  ~Trainer();
  TrainResult run();

  struct Validation {
    double nll = 0, accuracy = 0;
  };
  /// Loss per token and token accuracy of the validation split; none when a signal asked to stop.
  std::optional<Validation> validate();

 private:
  void resume(const ResumeOptions& resume);
  /// The folder to go on from, or "".
  std::string folder_to_resume(const ResumeOptions& resume) const;
  /// Launches one update of `accumulate` batches, fewer at the end of an epoch. The one before is finished meanwhile,
  /// so that the device always has work.
  void update();
  /// Waits for the launched update, if there is one, and counts it.
  void finish_update();
  /// Something is to be done after the launched update that needs its result: a log line, a validation, the end.
  bool result_needed() const;
  void skip_update(const std::string& reason, const std::vector<std::string>& ids);
  [[noreturn]] void fail_diverged(const std::string& what) const;
  /// Validation and saving, where they are due. Decided from the state alone, so that a resumed run makes up for what a
  /// signal cut short.
  void after_update();
  void validate_and_save();
  void save();
  void log_line();
  void live_line() const;
  bool finished() const;
  /// Updates of the whole run if none is skipped.
  int64_t total_updates() const;
  double seconds() const;  ///< of this run and the ones it resumes

  RunOptions options_;
  std::string run_;
  Context ctx_;
  std::unique_ptr<Comm> comm_;
  TrainData data_;
  std::shared_ptr<HostPool> pool_;
  std::unique_ptr<SpeechTask> task_;
  std::unique_ptr<Optimiser> optimiser_;
  std::unique_ptr<StepRunner> runner_;
  CheckpointFolder checkpoints_;
  ModelInfo info_;
  TrainState state_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<BatchLoader> loader_;
  int64_t saved_update_ = -1;
  double last_rate_ = 0, last_norm_ = 0;
  double start_seconds_ = 0, line_seconds_ = 0, earlier_seconds_ = 0;
  int64_t frames_done_ = 0, line_frames_ = 0, updates_done_ = 0;
};

}  // namespace tactus
