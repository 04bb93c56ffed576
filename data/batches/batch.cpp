#include "data/batches/batch.h"

#include <algorithm>

#include "core/error.h"

namespace tactus {
namespace {

/// Raw, normalised, augmented frames of one item as floats.
class FrameReader {
 public:
  FrameReader(const BatchPlan& plan, const BatchContents& contents, int64_t epoch, BatchScratch& scratch)
      : plan_(plan), contents_(contents), epoch_(epoch), scratch_(scratch) {}

  /// Writes the first `rows` frames of item i to `out` in the type of the batch.
  void read(const CorpusSplit& split, int64_t i, int64_t rows, int64_t utterance, void* out) {
    const int64_t bins = split.bins(), values = rows * bins;
    const bool direct = contents_.dtype == DType::f32 && rows == split.frames(i);
    if (!direct && static_cast<int64_t>(scratch_.frames.size()) < split.frames(i) * bins) {
      scratch_.frames.resize(static_cast<size_t>(split.frames(i) * bins));
    }
    float* frames = direct ? static_cast<float*>(out) : scratch_.frames.data();
    split.read_frames(i, frames);
    contents_.normaliser.apply(frames, rows, bins);
    if (plan_.shuffles()) {
      augment(contents_.augment, frames, rows, bins / contents_.layers, contents_.layers,
              {plan_.seed(), epoch_, utterance}, scratch_.warp);
    }
    if (!direct) store(frames, values, out);
  }

 private:
  void store(const float* values, int64_t n, void* out) const {
    if (contents_.dtype == DType::f32) return static_cast<void>(std::copy_n(values, n, static_cast<float*>(out)));
    if (contents_.dtype == DType::f64) return static_cast<void>(std::copy_n(values, n, static_cast<double*>(out)));
    auto* halves = static_cast<bf16*>(out);
    for (int64_t k = 0; k < n; ++k) halves[k] = bf16(values[k]);
  }

  const BatchPlan& plan_;
  const BatchContents& contents_;
  const int64_t epoch_;
  BatchScratch& scratch_;
};

void check(const CorpusSplit& split, const BatchContents& contents) {
  if (contents.ctc == CtcTarget::source && !split.has_src_tokens()) {
    throw ConfigError(
        "CTC on source text needs source tokens, which the corpus lacks: prepare it with source.vocab_size > 0");
  }
  const bool floating = contents.dtype == DType::f32 || contents.dtype == DType::f64 || contents.dtype == DType::bf16;
  if (!floating || contents.layers < 1 || split.bins() % contents.layers != 0) {
    throw ShapeError("batches of " + to_string(contents.dtype) + " with frames of " + std::to_string(split.bins()) +
                     " numbers in " + std::to_string(contents.layers) + " layers");
  }
}

/// Appends at most `limit` tokens of row i, and </s> where asked for; returns how many.
int64_t append(const TokenColumn& column, int64_t i, int64_t limit, bool eos, std::vector<int32_t>& out) {
  const size_t begin = out.size();
  column.append(i, out);
  if (static_cast<int64_t>(out.size() - begin) > limit) out.resize(begin + static_cast<size_t>(limit));
  if (eos) out.push_back(Tokenizer::kEos);
  return static_cast<int64_t>(out.size() - begin);
}

void append_texts(const CorpusSplit& split, const BatchPlan& plan, const BatchContents& contents, int64_t i,
                  Batch& batch) {
  batch.ids.push_back(split.id(i));
  batch.src_text.push_back(split.src_text(i));
  batch.tgt_text.push_back(split.tgt_text(i));
  if (!split.has_frames() && split.has_src_tokens()) {
    batch.source_lengths.push_back(
        append(split.src_tokens(), i, plan.source_limit(), contents.source_eos, batch.source_tokens));
    if (split.has_src2_tokens()) {
      batch.source2_lengths.push_back(
          append(split.src2_tokens(), i, plan.source_limit(), contents.source_eos, batch.source2_tokens));
    }
  }
  const size_t begin = batch.target_tokens.size();
  batch.target_lengths.push_back(append(split.tgt_tokens(), i, plan.target_limit() - 1, true, batch.target_tokens));
  batch.previous_tokens.push_back(Tokenizer::kEos);
  batch.previous_tokens.insert(batch.previous_tokens.end(), batch.target_tokens.begin() + static_cast<int64_t>(begin),
                               batch.target_tokens.end() - 1);
  if (contents.ctc == CtcTarget::none) return;
  const bool source = contents.ctc == CtcTarget::source;
  const int64_t limit = source ? split.src_tokens().length(i) : plan.target_limit() - 1;
  batch.ctc_lengths.push_back(
      append(source ? split.src_tokens() : split.tgt_tokens(), i, limit, contents.ctc_eos, batch.ctc_tokens));
}

}  // namespace

CtcTarget ctc_target_from_string(const std::string& name) {
  if (name == "none") return CtcTarget::none;
  if (name == "source") return CtcTarget::source;
  if (name == "target") return CtcTarget::target;
  throw ConfigError("CTC target is '" + name + "', expected none, source or target");
}

Batch make_batch(const BatchPlan& plan, const BatchContents& contents, int64_t epoch, int64_t number,
                 BatchScratch& scratch, const std::stop_token& stop) {
  const std::shared_ptr<const CorpusSplit>& split = plan.split_of(number);
  check(*split, contents);
  Batch batch;
  batch.epoch = epoch, batch.bins = split->bins(), batch.dtype = contents.dtype, batch.split = split;
  const int64_t row_bytes = batch.bins * size_of(batch.dtype);
  const int64_t bytes = split->has_frames() ? plan.source_rows(number) * row_bytes : 0;
  batch.features = contents.pool ? contents.pool->acquire(bytes) : HostBuffer(bytes);
  auto* out = batch.features.as<char>();
  FrameReader reader(plan, contents, epoch, scratch);
  for (int32_t i : plan.batch(number)) {
    if (stop.stop_requested()) break;
    batch.utterances.push_back(plan.first_utterance(number) + i);
    append_texts(*split, plan, contents, i, batch);
    if (!split->has_frames()) continue;
    const int64_t rows = std::min(split->frames(i), plan.source_limit());
    reader.read(*split, i, rows, batch.utterances.back(), out);
    out += rows * row_bytes;
    batch.frame_lengths.push_back(rows);
  }
  return batch;
}

int64_t feature_bytes(const BatchPlan& plan, const BatchOptions& options, DType dtype) {
  int64_t bytes = 0;
  for (int64_t b = 0; b < plan.batches(); ++b) {
    const CorpusSplit& split = *plan.split_of(b);
    if (!split.has_frames()) continue;
    bytes = std::max(bytes, std::min(plan.source_rows(b), options.max_frames) * split.bins() * size_of(dtype));
  }
  return bytes;
}

}  // namespace tactus
