// The contents of batches on the host. What a batch holds is a pure function of the plan, the options below, epoch and
// number.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/host_buffer.h"
#include "data/batches/batch_plan.h"
#include "data/batches/normalise.h"
#include "data/batches/specaugment.h"

namespace tactus {

/// Text on which an auxiliary CTC loss is computed.
enum class CtcTarget { none, source, target };
CtcTarget ctc_target_from_string(const std::string& name);

/// What is done to the data of a batch.
struct BatchContents {
  SpecAugmentOptions augment = {};  ///< training only
  Normaliser normaliser = Normaliser(Cmvn::utterance);
  int64_t layers = 1;        ///< parts of a frame that frequency masks treat alike
  DType dtype = DType::f32;  ///< of the features: f32, bf16 or f64; values are those of f32, rounded
  CtcTarget ctc = CtcTarget::none;
  bool ctc_eos = true;                       ///< CTC targets end with </s>
  bool source_eos = true;                    ///< source tokens end with </s>
  std::shared_ptr<HostPool> pool = nullptr;  ///< where features are put; null: memory of their own
};

/// Rows of all items lie end to end, in the order of `utterances`. Move-only: features are large.
struct Batch {
  int64_t epoch = 0, index = 0;
  int64_t bins = 0;                   ///< numbers in a frame; 0 for text
  DType dtype = DType::f32;           ///< of `features`
  std::vector<int32_t> utterances;    ///< numbers in the split (in a mixture: over all splits): keys of random numbers
  std::vector<std::string_view> ids;  ///< valid while the split lives (`split` keeps it alive)
  std::vector<std::string_view> src_text, tgt_text;
  std::vector<int64_t> frame_lengths;                    ///< rows of each item in `features`
  HostBuffer features;                                   ///< [frames(), bins], normalised and (training) augmented
  std::vector<int64_t> source_lengths, source2_lengths;  ///< text alone; source2: the second document of pairs
  std::vector<int32_t> source_tokens, source2_tokens;
  std::vector<int64_t> target_lengths;   ///< with </s>
  std::vector<int32_t> previous_tokens;  ///< decoder input: </s>, then the tokens
  std::vector<int32_t> target_tokens;    ///< the tokens, then </s>
  std::vector<int64_t> ctc_lengths;      ///< empty when there is no CTC target
  std::vector<int32_t> ctc_tokens;
  std::shared_ptr<const CorpusSplit> split;

  int64_t size() const { return static_cast<int64_t>(utterances.size()); }
  int64_t frames() const { return std::accumulate(frame_lengths.begin(), frame_lengths.end(), int64_t{0}); }
  int64_t tokens() const { return static_cast<int64_t>(target_tokens.size()); }
  /// Rows that the encoder reads: frames, or source tokens.
  int64_t source_rows() const {
    return bins > 0 ? frames() : static_cast<int64_t>(source_tokens.size() + source2_tokens.size());
  }
};

/// Room to work in, for one thread.
struct BatchScratch {
  std::vector<float> frames, warp;
};

/// Reads and assembles the items of batch number `number`, augmented as in `epoch` when `plan` is for training.
/// ConfigError when CTC wants source tokens that the corpus lacks. Between items `stop` is polled: the batch is then
/// incomplete.
Batch make_batch(const BatchPlan& plan, const BatchContents& contents, int64_t epoch, int64_t number,
                 BatchScratch& scratch, const std::stop_token& stop = {});
inline Batch make_batch(const BatchPlan& plan, const BatchContents& contents, int64_t epoch, int64_t number) {
  BatchScratch scratch;
  return make_batch(plan, contents, epoch, number, scratch);
}

/// Bytes of the features of the largest batch of a plan that keeps to max_frames.
int64_t feature_bytes(const BatchPlan& plan, const BatchOptions& options, DType dtype);

}  // namespace tactus
