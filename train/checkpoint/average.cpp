#include "train/checkpoint/average.h"

#include <algorithm>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/state_file.h"

namespace tactus {

std::vector<long> average_checkpoints(const std::string& run, AverageChoice choice, long count,
                                      const std::string& out) {
  const CheckpointFolder folder(run);
  std::vector<long> updates;
  if (choice == AverageChoice::best) {
    const auto newest = folder.newest();
    if (!newest)
      throw DataError(run + ": holds no checkpoint with a training state, so its best ones are not known; use --last");
    for (const ScoredCheckpoint& b : read_state_counters(folder.path(*newest) + "/state.h5").best)
      updates.push_back(b.update);
  } else {
    for (int64_t u : folder.updates()) updates.push_back(u);
    std::reverse(updates.begin(), updates.end());
  }
  if (updates.empty()) throw DataError(run + ": holds no checkpoint to average");
  updates.resize(std::min<size_t>(updates.size(), static_cast<size_t>(count)));
  // In order of age: a sum in fixed order does not depend on how the metric ranked them.
  std::sort(updates.begin(), updates.end());
  std::vector<std::string> paths;
  for (long u : updates) {
    const std::string problem = verify_checkpoint(folder.path(u), false);
    if (!problem.empty()) throw DataError(problem);
    paths.push_back(folder.model_path(u));
  }
  average_model_files(paths, out);
  return updates;
}

}  // namespace tactus
