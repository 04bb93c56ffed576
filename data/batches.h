// Batches: which utterances go together, in which order, and their contents on the host.
//
// A batch is packed: the rows of its utterances lie end to end, so its cost is the sum of frames. What a batch holds is
// a pure function of (options, seed, epoch, index): not of threads, prefetching or where a run was resumed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "data/corpus.h"
#include "data/features.h"

namespace tactus {

struct BatchOptions {
  std::string grouping = "length";   ///< length: similar lengths together; random: any
  int64_t max_frames = 40000;        ///< sum over a batch
  int64_t max_utterances = 0;        ///< 0: no limit
  int64_t min_source_frames = 5;     ///< shorter utterances are dropped
  int64_t max_source_frames = 6000;  ///< longer ones as well; 0: no limit
  int64_t max_target_tokens = 1024;  ///< </s> included; 0: no limit
  void visit(ConfigVisitor& v);
};

/// Utterances that a plan leaves out.
struct DropReport {
  int64_t total = 0;   ///< utterances looked at
  DropCounts reasons;  ///< by key of BatchOptions; `first` names the first ids
  int64_t dropped() const;
  std::string to_string() const;  ///< "12 of 2500 utterances dropped: 10 max_source_frames (first: a, b, c), ..."
};

/// The batches of one split. Utterances are sorted by descending length (ties in corpus order), or for training with
/// grouping `random` put in an order drawn from the seed, and cut into batches greedily; each training epoch visits the
/// batches in an order of its own. Packed batches waste nothing on unequal lengths, and batches of one length each bias
/// the gradient on small corpora; the papers' recipes group by length.
class BatchPlan {
 public:
  /// Training: unfit utterances are dropped and reported. DataError when more than half or all of them are.
  static BatchPlan for_training(const CorpusSplit& split, const BatchOptions& options, uint64_t seed);
  /// Evaluation: every utterance is kept, whatever its length; one beyond max_frames gets a batch of its own. Order is
  /// fixed.
  static BatchPlan for_evaluation(const CorpusSplit& split, const BatchOptions& options);

  int64_t batches() const { return static_cast<int64_t>(batches_.size()); }
  /// Utterances of batch number `number`.
  const std::vector<int32_t>& batch(int64_t number) const { return batches_[number]; }
  /// Batch numbers in the order of an epoch: a permutation drawn from (seed, epoch), or 0, 1, 2, ... for evaluation.
  std::vector<int32_t> order(int64_t epoch) const;
  int64_t utterances() const;
  const DropReport& drops() const { return drops_; }
  bool shuffles() const { return shuffle_; }
  uint64_t seed() const { return seed_; }

 private:
  void pack(const CorpusSplit& split, const BatchOptions& options, std::vector<int32_t> kept);
  std::vector<std::vector<int32_t>> batches_;
  DropReport drops_;
  bool shuffle_ = false;
  uint64_t seed_ = 0;
};

/// Text on which an auxiliary CTC loss is computed.
enum class CtcTarget { none, source, target };
CtcTarget ctc_target_from_string(const std::string& name);

/// Host contents of a batch. Rows of all utterances lie end to end, in the order of `utterances`.
struct Batch {
  int64_t epoch = 0, index = 0;
  int64_t bins = 0;
  std::vector<int32_t> utterances;    ///< numbers in the split: keys of random numbers
  std::vector<std::string_view> ids;  ///< valid while the split lives (`split` keeps it alive)
  std::vector<std::string_view> src_text, tgt_text;
  std::vector<int64_t> frame_lengths;    ///< rows of each utterance in `features`
  std::vector<float> features;           ///< [sum of frame_lengths, bins], after CMVN and (training) SpecAugment
  std::vector<int64_t> target_lengths;   ///< with </s>
  std::vector<int32_t> previous_tokens;  ///< decoder input: </s>, then the tokens
  std::vector<int32_t> target_tokens;    ///< the tokens, then </s>
  std::vector<int64_t> ctc_lengths;      ///< empty when there is no CTC target
  std::vector<int32_t> ctc_tokens;
  std::shared_ptr<const CorpusSplit> split;

  int64_t size() const { return static_cast<int64_t>(utterances.size()); }
  int64_t frames() const { return static_cast<int64_t>(features.size()) / (bins > 0 ? bins : 1); }
  int64_t tokens() const { return static_cast<int64_t>(target_tokens.size()); }
};

/// What is done to the data of a batch.
struct BatchContents {
  SpecAugmentOptions augment = {};  ///< training only
  CtcTarget ctc = CtcTarget::none;
  bool ctc_eos = true;  ///< CTC targets end with </s>
};

/// Reads and assembles the utterances of batch number `number`, augmented as in `epoch` when `plan` is for training.
/// ConfigError when CTC wants source tokens that the corpus lacks.
Batch make_batch(std::shared_ptr<const CorpusSplit> split, const BatchPlan& plan, const BatchContents& contents,
                 int64_t epoch, int64_t number);

}  // namespace tactus
