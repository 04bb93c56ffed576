// log.jsonl: one JSON object a line. Everything but the fields of `timing` is a function of configuration and data, so
// a resumed run's log equals that of a run that was never stopped.
#pragma once

#include <string>

#include "train/checkpoint/checkpoint.h"

namespace tactus {

/// Wall-clock and memory facts of a log line.
struct Timing {
  double seconds = 0, frames_per_second = 0;
  int64_t memory_peak = 0;
};

class RunLog {
 public:
  /// Appends to `path`; lines of what came after `state` (of a run that died later than its last checkpoint) are
  /// removed.
  RunLog(const std::string& path, const TrainState& state);
  void train_line(const TrainState& state, double rate, const Timing& timing);
  void valid_line(const TrainState& state, double nll, double accuracy, double metric, bool best);
  /// After the skipped update was counted.
  void skipped_line(const TrainState& state, const std::string& what, const std::vector<std::string>& utterances);

 private:
  void append(const std::string& line);
  std::string path_;
};

}  // namespace tactus
