// Plans: which items go together in a batch, and in which order batches come.
//
// A batch is packed: the rows of its items lie end to end, so its cost is the sum of their lengths. Which items batch
// `index` of an epoch holds is a pure function of (options, seed, epoch, index): not of threads, prefetching or where a
// run was resumed.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/batches/batch_options.h"
#include "data/corpus/corpus.h"

namespace tactus {

/// Items that a plan leaves out or cuts.
struct DropReport {
  int64_t total = 0;     ///< items looked at
  DropCounts reasons;    ///< dropped, by key of BatchOptions, or "empty_target"
  DropCounts truncated;  ///< cut, by key
  int64_t dropped() const;
  /// "12 of 2500 utterances dropped: 10 max_source_frames (a, b, c; first: ...), ...; 3 truncated: ...".
  std::string to_string() const;
};

/// A corpus of a mixture.
struct TrainingPart {
  std::string name;  ///< for messages
  std::shared_ptr<const CorpusSplit> split;
  double weight = 1;
};

/// The batches of one split, or of a mixture of several. Items are sorted by descending length (ties in corpus order),
/// or for training with grouping `random` put in an order drawn from the seed (`buckets`: within each class of similar
/// length), and cut into batches greedily; each training epoch visits the batches in an order of its own, and the first
/// one begins with the largest batch, so that a lack of memory shows at once. Packed batches waste nothing on unequal
/// lengths, and batches of one length each bias the gradient on small corpora; the papers' recipes group by length.
class BatchPlan {
 public:
  /// Training: unfit items are dropped, or cut, and reported. DataError when more than half or all are dropped, or any
  /// is too long under on_long: error. ConfigError for a split without frames and source tokens.
  static BatchPlan for_training(std::shared_ptr<const CorpusSplit> split, const BatchOptions& options, uint64_t seed);
  /// A mixture: the batches of each part hold its items alone. An epoch has as many batches as all parts together, of
  /// which part i gives a share p_i ~ (weight_i batches_i)^(1 / temperature), at least one: the next ones of an endless
  /// series of passes through its batches, each pass in an order of its own. With weights and temperature 1 an epoch
  /// visits every batch once.
  static BatchPlan for_mixture(std::vector<TrainingPart> parts, const BatchOptions& options, double temperature,
                               uint64_t seed);
  /// Evaluation: every item is kept and nothing is cut, whatever its length; one beyond a limit of the batch gets a
  /// batch of its own. Order is fixed.
  static BatchPlan for_evaluation(std::shared_ptr<const CorpusSplit> split, const BatchOptions& options);

  /// Batches of an epoch, and how many different ones there are.
  int64_t batches() const { return static_cast<int64_t>(begins_.size()) - 1; }
  /// Items of batch number `number`: rows of its split.
  std::span<const int32_t> batch(int64_t number) const;
  /// The split of batch number `number`.
  const std::shared_ptr<const CorpusSplit>& split_of(int64_t number) const { return parts_[part_of(number)].split; }
  /// Added to its rows to get numbers that are unique over all splits: keys of random numbers.
  int32_t first_utterance(int64_t number) const { return parts_[part_of(number)].first_utterance; }
  /// At most so many frames of an item are used, or source tokens of each document; and target tokens with </s>.
  int64_t source_limit() const { return source_limit_; }
  int64_t target_limit() const { return target_limit_; }
  /// Batch numbers in the order of an epoch: drawn from (seed, epoch), or 0, 1, 2, ... for evaluation.
  std::vector<int32_t> order(int64_t epoch) const;
  /// Number of the batch with the most source and target rows; -1 where there is none.
  int64_t largest() const { return largest_; }
  /// What max_frames or max_tokens is compared with: of the longest item, and the most of a batch.
  int64_t longest_item() const { return longest_item_; }
  int64_t fullest_batch() const { return fullest_batch_; }
  /// Source rows (frames, or tokens) of a batch, as cut.
  int64_t source_rows(int64_t number) const;
  int64_t utterances() const { return drops_.total - drops_.dropped(); }
  const DropReport& drops() const { return drops_; }
  bool shuffles() const { return shuffle_; }
  uint64_t seed() const { return seed_; }
  /// Changes when the items, their lengths or the mixture do.
  std::string fingerprint() const;

 private:
  struct Part {
    std::string name;
    std::shared_ptr<const CorpusSplit> split;
    int32_t first_utterance = 0;
    int64_t first_batch = 0, batches = 0;
    int64_t quota = 0;  ///< batches of an epoch
  };
  struct Lengths {
    int64_t source = 0, target = 0;
  };
  size_t part_of(int64_t number) const;
  Lengths lengths(const CorpusSplit& split, int64_t i) const;
  void add_part(const TrainingPart& part, const BatchOptions& options);
  std::vector<int32_t> select(const CorpusSplit& split, const BatchOptions& options, DropReport& report) const;
  void arrange(const CorpusSplit& split, const BatchOptions& options, std::vector<int32_t>& items) const;
  void pack(const CorpusSplit& split, const BatchOptions& options, const std::vector<int32_t>& items);

  std::vector<Part> parts_;
  std::vector<int32_t> items_;         ///< of all batches, end to end
  std::vector<int64_t> begins_ = {0};  ///< where each batch begins, and the end
  std::vector<int64_t> costs_;         ///< source and target rows of each batch
  DropReport drops_;
  int64_t largest_ = -1, longest_item_ = 0, fullest_batch_ = 0;
  int64_t source_limit_ = std::numeric_limits<int64_t>::max(), target_limit_ = source_limit_;
  bool shuffle_ = false;
  uint64_t seed_ = 0;
};

/// Splits `total` in shares proportional to `weights`, by largest remainders, at least 1 each (total >= weights).
std::vector<int64_t> apportion(const std::vector<double>& weights, int64_t total);

}  // namespace tactus
