#include "train/loop/batch_fit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>

#include "core/process/log.h"
#include "train/loop/train_data.h"
#include "train/optimiser/optimiser.h"
#include "train/tasks/speech_task.h"

namespace tactus {
namespace {

constexpr double kTolerance = 0.05;
// What a batch takes varies with its numbers of items and target tokens.
constexpr double kMargin = 0.1;
constexpr double kUsableHost = 0.9;

/// `rows`: frames, or tokens of text.
RunOptions with_limit(RunOptions options, bool text, int64_t rows) {
  (text ? options.data.batches.max_tokens : options.data.batches.max_frames) = rows;
  options.data.batches.batch = "fixed";
  return options;
}

/// The batch with the most target tokens.
int64_t most_tokens(const BatchPlan& plan) {
  int64_t most = -1, where = 0;
  for (int64_t number = 0; number < plan.batches(); ++number) {
    int64_t tokens = 0;
    for (const int32_t item : plan.batch(number)) tokens += plan.split_of(number)->tgt_tokens().length(item);
    if (tokens > most) most = tokens, where = number;
  }
  return where;
}

/// Trials with one set of data.
class DryRun {
 public:
  /// `budget`: bytes to keep to; 0: what the device has.
  DryRun(const RunOptions& options, int64_t budget)
      : options_(options),
        budget_(budget),
        data_(TrainData::open(with_limit(with_limit(options, true, kAnyLength), false, kAnyLength).data,
                              static_cast<uint64_t>(options.seed))) {}

  /// Batches as large as the data and the limit on utterances let them be.
  const BatchPlan& whole() const { return data_.plan; }
  bool text() const { return !data_.parts.front().split->has_frames(); }
  /// Bytes taken from the device by weights, moments and a pass over the largest batch and some others, or nothing.
  std::optional<int64_t> bytes(int64_t rows) {
    try {
      return run(with_limit(options_, text(), rows));
    } catch (const OutOfMemory& e) {
      said_ = e.what();
      return std::nullopt;
    }
  }
  /// What the last trial without room said.
  const std::string& said() const { return said_; }

 private:
  static constexpr int64_t kAnyLength = 1000000000;

  int64_t run(const RunOptions& o) const {
    const BatchPlan plan =
        BatchPlan::for_mixture(data_.parts, o.data.batches, o.data.temperature, static_cast<uint64_t>(o.seed));
    const Vocabularies vocabularies = vocabularies_of(o, data_.corpus);
    const Context ctx = make_context(o.device, o.threads, budget_);
    ctx.allocator().set_hint(text() ? "not even the longest item fits: lower data.batches.max_source_tokens"
                                    : "not even the longest item fits: lower data.batches.max_source_frames");
    SpeechTask task(ctx, o, vocabularies.target, vocabularies.ctc, true);
    task.store().initialise(static_cast<uint64_t>(o.seed));
    const Optimiser optimiser(o.optimiser, task.store(), o.train.max_updates);
    BatchContents contents = evaluation_contents(data_.corpus, data_.normaliser, task.compute_type());
    if (o.ctc_weight > 0) contents.ctc = ctc_target_from_string(o.ctc_target);
    // Batches of about one size but of other shapes leave holes of other sizes in the pool; long targets cost as well.
    std::set<int64_t> numbers = {plan.largest(), 0, plan.batches() / 2};
    numbers.insert(most_tokens(plan));
    for (const int64_t number : numbers) {
      const Batch batch = make_batch(plan, contents, 0, number);
      Tape tape(ctx);
      const SpeechLoss loss = task.loss(tape, task.to_device(batch), true, 1);
      tape.backward(loss.total);
    }
    ctx.synchronize();
    return ctx.allocator().use().reserved;
  }

  const RunOptions& options_;
  const int64_t budget_;
  const TrainData data_;
  std::string said_;
};

/// A number in a file of one number; the largest where there is no such file or it says "max".
int64_t number_in(const char* file) {
  int64_t value = std::numeric_limits<int64_t>::max();
  std::ifstream in(file);
  int64_t read = 0;
  if (in >> read) value = read;
  return value;
}

}  // namespace

std::optional<int64_t> fit_limit(const std::function<std::optional<int64_t>(int64_t)>& trial, int64_t smallest,
                                 int64_t largest, int64_t budget) {
  largest = std::max(largest, smallest);
  std::optional<int64_t> bytes = trial(smallest);
  if (!bytes) return std::nullopt;
  int64_t fits = smallest, too_large = largest + 1;
  int64_t previous = 0, previous_bytes = 0;
  const auto close_enough = [&](int64_t limit) {
    return static_cast<double>(limit - fits) <= kTolerance * static_cast<double>(fits);
  };
  while (fits < largest && !close_enough(too_large)) {
    int64_t next = too_large <= largest ? fits + (too_large - fits) / 2 : 2 * fits;
    if (budget > 0 && previous > 0 && *bytes > previous_bytes) {
      // Memory grows about linearly: aim a little below where it would run out.
      const double slope = static_cast<double>(*bytes - previous_bytes) / static_cast<double>(fits - previous);
      const double aim = (1 - kMargin / 2) * static_cast<double>(budget) - static_cast<double>(*bytes);
      const int64_t predicted = fits + static_cast<int64_t>(std::max(0.0, aim) / slope);
      if (close_enough(predicted)) break;
      if (predicted < too_large) next = std::min(predicted, 8 * fits);
    }
    next = std::clamp(next, fits + 1, std::min(too_large - 1, largest));
    if (const std::optional<int64_t> more = trial(next)) {
      previous = fits, previous_bytes = *bytes;
      fits = next, bytes = more;
    } else {
      too_large = next;
      previous = 0;  // the line was wrong: halve from here on
    }
  }
  if (fits == largest) return largest;
  return std::max(smallest, static_cast<int64_t>((1 - kMargin) * static_cast<double>(fits)));
}

int64_t available_host_bytes() {
  int64_t available = std::numeric_limits<int64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) available = std::stoll(line.substr(13)) << 10;
  }
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  if (limit != std::numeric_limits<int64_t>::max()) {
    available = std::min(available, std::max<int64_t>(0, limit - number_in("/sys/fs/cgroup/memory.current")));
  }
  return available;
}

RunOptions fit_batches(const RunOptions& options) {
  if (options.data.batches.batch != "auto") return options;
  const bool cpu = make_context(options.device, options.threads).device() == Device::cpu;
  const auto budget = cpu ? static_cast<int64_t>(kUsableHost * static_cast<double>(available_host_bytes())) : 0;
  DryRun dry_run(options, budget);
  const auto trial = [&](int64_t rows) { return dry_run.bytes(rows); };
  const BatchPlan& whole = dry_run.whole();
  const std::optional<int64_t> limit = fit_limit(trial, whole.longest_item(), whole.fullest_batch(), budget);
  if (!limit) throw OutOfMemory(dry_run.said());
  note(std::string("batch: auto: data.batches.") + (dry_run.text() ? "max_tokens" : "max_frames") + " is " +
       std::to_string(*limit));
  return with_limit(options, dry_run.text(), *limit);
}

}  // namespace tactus
