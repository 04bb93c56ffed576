#include "data/batches.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/rng.h"

namespace tactus {
namespace {

/// The option that rules utterance i out, or null.
const char* unfit(const CorpusSplit& split, const BatchOptions& o, int64_t i) {
  const int64_t frames = split.frames(i), tokens = split.tgt_tokens().length(i) + 1;
  if (frames < o.min_source_frames) return "min_source_frames";
  if (o.max_source_frames > 0 && frames > o.max_source_frames) return "max_source_frames";
  if (o.max_target_tokens > 0 && tokens > o.max_target_tokens) return "max_target_tokens";
  if (frames > o.max_frames) return "max_frames";
  return nullptr;
}

void check_most_kept(const DropReport& drops, const std::string& split) {
  if (drops.dropped() * 2 <= drops.total && drops.dropped() < drops.total) return;
  if (drops.total == 0) throw DataError("split " + split + ": has no utterances");
  throw DataError("split " + split + ": " + drops.to_string() +
                  "; more than half is too much: check the limits and their units (frames of 10 ms, tokens)");
}

/// Fisher and Yates, spelt out: std::shuffle differs between standard libraries.
void permute(std::vector<int32_t>& values, Rng rng) {
  for (size_t n = values.size(); n > 1; --n) std::swap(values[n - 1], values[rng.below(n)]);
}

}  // namespace

void BatchOptions::visit(ConfigVisitor& v) {
  v.field("grouping", grouping,
          {.doc = "Which training utterances share a batch: those of similar length, or any",
           .choices = {"length", "random"}});
  v.field("max_frames", max_frames,
          {.doc = "Feature frames in a batch, summed", .unit = "frames", .min = 1, .max = 1e9});
  v.field("max_utterances", max_utterances, {.doc = "Utterances in a batch; 0: no limit", .min = 0, .max = 1e6});
  v.field("min_source_frames", min_source_frames,
          {.doc = "Shorter training utterances are dropped", .unit = "frames", .min = 1, .max = 1e6});
  v.field("max_source_frames", max_source_frames,
          {.doc = "Longer training utterances are dropped; 0: no limit", .unit = "frames", .min = 0, .max = 1e9});
  v.field("max_target_tokens", max_target_tokens,
          {.doc = "Training utterances with more target tokens are dropped; 0: no limit",
           .unit = "tokens",
           .min = 0,
           .max = 1e6});
}

int64_t DropReport::dropped() const {
  int64_t count = 0;
  for (const auto& [reason, drop] : reasons) count += drop.count;
  return count;
}

std::string DropReport::to_string() const {
  std::string text = std::to_string(dropped()) + " of " + std::to_string(total) + " utterances dropped";
  return dropped() == 0 ? text : text + ": " + tactus::to_string(reasons);
}

BatchPlan BatchPlan::for_training(const CorpusSplit& split, const BatchOptions& options, uint64_t seed) {
  BatchPlan plan;
  plan.shuffle_ = true, plan.seed_ = seed;
  plan.drops_.total = split.size();
  std::vector<int32_t> kept;
  for (int64_t i = 0; i < split.size(); ++i) {
    const char* reason = unfit(split, options, i);
    if (reason == nullptr) {
      kept.push_back(static_cast<int32_t>(i));
      continue;
    }
    count_drop(plan.drops_.reasons, reason, std::string(split.id(i)), "");
  }
  check_most_kept(plan.drops_, split.name());
  plan.pack(split, options, std::move(kept));
  return plan;
}

BatchPlan BatchPlan::for_evaluation(const CorpusSplit& split, const BatchOptions& options) {
  BatchPlan plan;
  plan.drops_.total = split.size();
  std::vector<int32_t> all(static_cast<size_t>(split.size()));
  std::iota(all.begin(), all.end(), 0);
  plan.pack(split, options, std::move(all));
  return plan;
}

void BatchPlan::pack(const CorpusSplit& split, const BatchOptions& options, std::vector<int32_t> kept) {
  if (shuffle_ && options.grouping == "random") {
    permute(kept, Rng(mix_key(seed_, hash_path("data.grouping"))));
  } else {
    std::stable_sort(kept.begin(), kept.end(), [&](int32_t a, int32_t b) { return split.frames(a) > split.frames(b); });
  }
  int64_t frames = 0;
  for (int32_t i : kept) {
    bool full = batches_.empty() || frames + split.frames(i) > options.max_frames ||
                (options.max_utterances > 0 && static_cast<int64_t>(batches_.back().size()) >= options.max_utterances);
    if (full) {
      batches_.emplace_back();
      frames = 0;
    }
    batches_.back().push_back(i);
    frames += split.frames(i);
  }
}

std::vector<int32_t> BatchPlan::order(int64_t epoch) const {
  std::vector<int32_t> order(batches_.size());
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle_) return order;
  permute(order, Rng(mix_key(mix_key(seed_, hash_path("data.order")), static_cast<uint64_t>(epoch))));
  return order;
}

int64_t BatchPlan::utterances() const { return drops_.total - drops_.dropped(); }

CtcTarget ctc_target_from_string(const std::string& name) {
  if (name == "none") return CtcTarget::none;
  if (name == "source") return CtcTarget::source;
  if (name == "target") return CtcTarget::target;
  throw ConfigError("CTC target is '" + name + "', expected none, source or target");
}

Batch make_batch(std::shared_ptr<const CorpusSplit> split, const BatchPlan& plan, const BatchContents& contents,
                 int64_t epoch, int64_t number) {
  if (contents.ctc == CtcTarget::source && !split->has_src_tokens()) {
    throw ConfigError(
        "CTC on source text needs source tokens, which the corpus lacks: prepare it with source.vocab_size > 0");
  }
  Batch batch;
  batch.epoch = epoch, batch.bins = split->bins();
  batch.utterances = plan.batch(number);
  int64_t rows = 0;
  for (int32_t i : batch.utterances) rows += split->frames(i);
  batch.features.resize(static_cast<size_t>(rows * batch.bins));
  float* out = batch.features.data();
  for (int32_t i : batch.utterances) {
    const int64_t frames = split->frames(i);
    split->read_frames(i, out);
    apply_cmvn(out, frames, batch.bins);
    if (plan.shuffles()) augment(contents.augment, out, frames, batch.bins, plan.seed(), epoch, i);
    out += frames * batch.bins;
    batch.frame_lengths.push_back(frames);
    batch.ids.push_back(split->id(i));
    batch.src_text.push_back(split->src_text(i));
    batch.tgt_text.push_back(split->tgt_text(i));
    const std::vector<int32_t> tokens = split->tgt_tokens()[i];
    batch.target_lengths.push_back(static_cast<int64_t>(tokens.size()) + 1);
    batch.previous_tokens.push_back(Tokenizer::kEos);
    batch.previous_tokens.insert(batch.previous_tokens.end(), tokens.begin(), tokens.end());
    batch.target_tokens.insert(batch.target_tokens.end(), tokens.begin(), tokens.end());
    batch.target_tokens.push_back(Tokenizer::kEos);
    if (contents.ctc == CtcTarget::none) continue;
    const std::vector<int32_t> ctc = contents.ctc == CtcTarget::source ? split->src_tokens()[i] : tokens;
    batch.ctc_tokens.insert(batch.ctc_tokens.end(), ctc.begin(), ctc.end());
    if (contents.ctc_eos) batch.ctc_tokens.push_back(Tokenizer::kEos);
    batch.ctc_lengths.push_back(static_cast<int64_t>(ctc.size()) + (contents.ctc_eos ? 1 : 0));
  }
  batch.split = std::move(split);
  return batch;
}

}  // namespace tactus
