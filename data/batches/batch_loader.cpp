#include "data/batches/batch_loader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace tactus {

BatchLoader::BatchLoader(BatchPlan plan, BatchContents contents, LoaderPosition start, LoaderOptions options)
    : plan_(std::move(plan)),
      contents_(std::move(contents)),
      options_{std::max<int64_t>(options.threads, 1), std::max<int64_t>(options.prefetch, 1)},
      // One less, because the consumer may hold a batch.
      slots_(static_cast<size_t>(options_.threads + options_.prefetch - 1)) {
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
  constexpr int64_t kMostEpochs = std::numeric_limits<int32_t>::max();
  if (position.epoch < 0 || position.epoch > kMostEpochs || position.index < 0 || position.index > plan_.batches()) {
    throw DataError("loader: position epoch " + std::to_string(position.epoch) + ", batch " +
                    std::to_string(position.index) + " is beyond the " + std::to_string(plan_.batches()) +
                    " batches of the plan; the corpus or the batch options have changed");
  }
  position_ = claim_position_ = position;
  claimed_ = delivered_ = 0;
  no_more_ = false;
  for (Slot& slot : slots_) slot = {};
  try {
    for (int64_t t = 0; t < options_.threads; ++t) {
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

void BatchLoader::stop() noexcept {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
}

void BatchLoader::seek(LoaderPosition position) {
  stop();
  start(position);
}

std::optional<BatchLoader::Job> BatchLoader::claim(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto room = [&] { return no_more_ || claimed_ - delivered_ < static_cast<int64_t>(slots_.size()); };
  if (!changed_.wait(lock, stop, room) || no_more_ || stop.stop_requested()) return std::nullopt;
  if (!normalise(claim_position_)) {
    no_more_ = true;
    changed_.notify_all();
    return std::nullopt;
  }
  if (claim_position_.epoch != order_epoch_) {
    order_ = plan_.order(claim_position_.epoch);
    order_epoch_ = claim_position_.epoch;
  }
  const Job job{claimed_++, order_[claim_position_.index], claim_position_};
  ++claim_position_.index;
  return job;
}

void BatchLoader::work(const std::stop_token& stop) {
  BatchScratch scratch;
  while (const std::optional<Job> job = claim(stop)) {
    Slot built;
    built.ready = true;
    try {
      built.batch = make_batch(plan_, contents_, job->position.epoch, job->number, scratch, stop);
      built.batch->index = job->position.index;
    } catch (...) {
      built.error = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    if (built.error) no_more_ = true;
    slots_[job->ticket % slots_.size()] = std::move(built);
    changed_.notify_all();
  }
}

std::optional<Batch> BatchLoader::next() {
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[delivered_ % slots_.size()];
  changed_.wait(lock, [&] { return slot.ready || (no_more_ && delivered_ == claimed_); });
  if (!slot.ready) return std::nullopt;
  if (slot.error) std::rethrow_exception(slot.error);
  std::optional<Batch> batch = std::move(slot.batch);
  slot = {};
  ++delivered_;
  position_ = {batch->epoch, batch->index + 1};
  normalise(position_);
  changed_.notify_all();
  return batch;
}

}  // namespace tactus
