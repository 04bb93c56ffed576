#include "data/batch_loader.h"

#include <utility>

#include "core/error.h"

namespace tactus {

BatchLoader::BatchLoader(std::shared_ptr<const CorpusSplit> split, BatchPlan plan, BatchContents contents,
                         LoaderPosition start, int64_t prefetch)
    : split_(std::move(split)),
      plan_(std::move(plan)),
      contents_(std::move(contents)),
      prefetch_(static_cast<size_t>(prefetch < 1 ? 1 : prefetch)) {
  this->start(start);
}

BatchLoader::~BatchLoader() { stop(); }

bool BatchLoader::normalise(LoaderPosition& position) const {
  if (position.index < plan_.batches()) return true;
  if (!plan_.shuffles()) return false;
  ++position.epoch;
  position.index = 0;
  return true;
}

void BatchLoader::start(LoaderPosition position) {
  if (position.epoch < 0 || position.index < 0 || position.index > plan_.batches()) {
    throw DataError("loader: position epoch " + std::to_string(position.epoch) + ", batch " +
                    std::to_string(position.index) + " is beyond the " + std::to_string(plan_.batches()) +
                    " batches of split " + split_->name() + "; the corpus or the batch options have changed");
  }
  position_ = position;
  ready_.clear();
  error_ = nullptr;
  finished_ = stopping_ = false;
  thread_ = std::thread([this, position] { produce(position); });
}

void BatchLoader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BatchLoader::seek(LoaderPosition position) {
  stop();
  start(position);
}

void BatchLoader::produce(LoaderPosition position) {
  try {
    std::vector<int32_t> order;
    int64_t ordered_epoch = -1;
    while (normalise(position)) {
      if (position.epoch != ordered_epoch) {
        order = plan_.order(position.epoch);
        ordered_epoch = position.epoch;
      }
      Batch batch = make_batch(split_, plan_, contents_, position.epoch, order[position.index]);
      batch.index = position.index++;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || ready_.size() < prefetch_; });
      if (stopping_) return;
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

std::optional<Batch> BatchLoader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || finished_; });
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  position_ = {batch.epoch, batch.index + 1};
  normalise(position_);
  changed_.notify_all();
  return batch;
}

}  // namespace tactus
