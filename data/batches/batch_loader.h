// Builds batches ahead on threads of its own, so that training waits for data only when all of them together are slower
// than training.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/batches/batch.h"

namespace tactus {

/// A place in the stream of batches: `index` batches of epoch `epoch` were taken.
struct LoaderPosition {
  int64_t epoch = 0, index = 0;
  bool operator==(const LoaderPosition&) const = default;
};

struct LoaderOptions {
  int64_t threads = 2;
  int64_t prefetch = 4;  ///< batches ready or about to be
};

/// A stream of batches in the order of the plan, the same for any number of threads. Training goes through epoch after
/// epoch without end; evaluation ends after one. For one consumer. At most prefetch + threads batches live at a time,
/// the consumer's included while it holds one.
class BatchLoader {
 public:
  /// DataError for a position beyond the plan.
  BatchLoader(BatchPlan plan, BatchContents contents, LoaderPosition start = {}, LoaderOptions options = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next batch; none at the end of an evaluation. What went wrong with it is thrown here, after the good batches
  /// before it, and again by every later call.
  std::optional<Batch> next();
  /// Where next() stands: save it to resume, in O(1), with exactly the batches that would have followed.
  LoaderPosition position() const { return position_; }
  void seek(LoaderPosition position);
  const BatchPlan& plan() const { return plan_; }

 private:
  /// A batch that a thread builds or has built. Slot `ticket % slots` serves the batch that is `ticket` after the
  /// start.
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr error;
    bool ready = false;
  };
  /// The batch that a thread is to build.
  struct Job {
    int64_t ticket = 0, number = 0;
    LoaderPosition position;
  };
  void start(LoaderPosition position);
  void stop() noexcept;
  void work(const std::stop_token& stop);
  std::optional<Job> claim(const std::stop_token& stop);
  /// Moves to the next epoch where one is done; false at the end of an evaluation.
  bool normalise(LoaderPosition& position) const;

  const BatchPlan plan_;
  const BatchContents contents_;
  const LoaderOptions options_;
  LoaderPosition position_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;
  int64_t claimed_ = 0, delivered_ = 0;  // tickets
  LoaderPosition claim_position_;
  std::vector<int32_t> order_;  // of epoch order_epoch_
  int64_t order_epoch_ = -1;
  bool no_more_ = false;  // the evaluation ends, or a batch failed
  std::vector<std::jthread> threads_;
};

}  // namespace tactus
