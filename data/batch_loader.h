// Reads batches ahead on a thread of its own, so that training waits for the disk only when the disk is slower than
// training.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "data/batches.h"

namespace tactus {

/// A place in the stream of batches: `index` batches of epoch `epoch` were taken.
struct LoaderPosition {
  int64_t epoch = 0, index = 0;
  bool operator==(const LoaderPosition&) const = default;
};

/// A stream of batches. Training goes through epoch after epoch without end; evaluation ends after one. For one
/// consumer.
class BatchLoader {
 public:
  /// `prefetch`: batches held ready. DataError or ConfigError for a position beyond the plan.
  BatchLoader(std::shared_ptr<const CorpusSplit> split, BatchPlan plan, BatchContents contents,
              LoaderPosition start = {}, int64_t prefetch = 4);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next batch; none at the end of an evaluation. What went wrong in the thread is thrown here, after the good
  /// batches before it, and again by every later call.
  std::optional<Batch> next();
  /// Where next() stands: save it to resume, in O(1), with exactly the batches that would have followed.
  LoaderPosition position() const { return position_; }
  void seek(LoaderPosition position);
  const BatchPlan& plan() const { return plan_; }

 private:
  void start(LoaderPosition position);
  void stop();
  void produce(LoaderPosition position);
  /// Moves to the next epoch where one is done; false at the end of an evaluation.
  bool normalise(LoaderPosition& position) const;

  std::shared_ptr<const CorpusSplit> split_;
  BatchPlan plan_;
  BatchContents contents_;
  size_t prefetch_;
  LoaderPosition position_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr error_;
  bool finished_ = false, stopping_ = false;
};

}  // namespace tactus
