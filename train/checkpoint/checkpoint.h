// Checkpoints: checkpoints/step-N/{model.h5, state.h5, manifest.json}. Files are written in a temporary folder; the
// manifest with sizes and checksums comes last; then the folder is renamed. A reader believes only what a manifest
// confirms, so a kill at any moment leaves either the whole new checkpoint or none of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/model_file.h"
#include "train/optimiser/optimiser.h"

namespace tactus {

struct ScoredCheckpoint {
  int64_t update = 0;
  double metric = 0;  ///< larger is better
};

/// Sums since the last line of the log; part of the state, so that a resumed log goes on as if nothing had happened.
struct LogSums {
  double loss = 0, nll = 0, ctc = 0, norm = 0, correct = 0;
  int64_t tokens = 0, frames = 0, updates = 0, ctc_infeasible = 0;
};

/// Everything that a resumed run needs besides weights and moments. One save, one load.
struct TrainState {
  int64_t update = 0;      ///< finished updates
  int64_t epoch = 0;       ///< epoch of the next batch, from 0
  int64_t next_batch = 0;  ///< position in the epoch's plan
  int64_t skipped = 0, skipped_in_row = 0;
  int64_t validations_without_gain = 0;
  int64_t validated_update = 0;        ///< of the last validation
  int64_t frames = 0;                  ///< trained on, all told
  double seconds = 0;                  ///< wall clock of training, all told; not part of what is repeatable
  std::vector<ScoredCheckpoint> best;  ///< best first
  LogSums sums;
  std::string corpus_fingerprint;
  int64_t threads = 0;
};

class CheckpointFolder {
 public:
  /// `run` is the run's folder; nothing is created yet.
  explicit CheckpointFolder(const std::string& run) : folder_(run + "/checkpoints") {}
  /// Clears up after a killed writer: removes unfinished folders, puts back one that was being replaced. For the
  /// trainer alone.
  void recover() const;

  /// Writes step-<state.update>, replacing one of that name.
  void save(const TrainState& state, const ModelInfo& info, ParameterStore& store, const Optimiser& optimiser);
  /// Newest update whose manifest verifies and that has a state file; damaged ones are named in a warning.
  std::optional<int64_t> newest() const;
  /// After a save of `state`: keeps the state of the `last` newest, the model file of its best, and nothing else.
  /// Folders of later updates are left alone: they were too damaged to go on from, and must not push out good ones.
  void prune(const TrainState& state, int64_t last) const;

  std::string path(int64_t update) const;
  std::string model_path(int64_t update) const { return path(update) + "/model.h5"; }
  std::vector<int64_t> updates() const;  ///< of all folders, ascending

 private:
  std::string folder_;
};

/// Checks sizes and checksums of a checkpoint folder against its manifest. Empty when all is well, else one line saying
/// what is wrong. `with_state`: the state file must be there too.
std::string verify_checkpoint(const std::string& folder, bool with_state);

/// Fills store and optimiser from a checkpoint folder. DataError when it does not verify or is of another model.
TrainState load_checkpoint(const std::string& folder, ParameterStore& store, const Optimiser& optimiser);

/// Model file that a name given on a command line stands for: a model file, a checkpoint folder or a run folder (its
/// average if there is one, else its best, else its newest checkpoint). DataError when there is none or it does not
/// verify.
std::string find_model(const std::string& path);

}  // namespace tactus
