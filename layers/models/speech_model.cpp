#include "layers/models/speech_model.h"

#include "autograd/pointwise.h"

namespace tactus {
namespace {

/// Frames that CTC needs at least: one a label and a blank between equal neighbours.
int64_t frames_needed(const std::vector<int32_t>& labels, int64_t begin, int64_t end) {
  int64_t n = end - begin;
  for (int64_t i = begin + 1; i < end; ++i) n += labels[static_cast<size_t>(i)] == labels[static_cast<size_t>(i - 1)];
  return n;
}

}  // namespace

void SpeechModelOptions::visit(ConfigVisitor& v) {
  v.field("width", width, {.doc = "Model width", .min = 4});
  v.field("features", features, {.doc = "Numbers in an input frame, all layers together", .min = 1});
  v.field("feature_layers", feature_layers,
          {.doc = "Layers that lie side by side in a frame and are summed with trained weights", .min = 1, .max = 256});
  v.field("feature_projection", feature_projection,
          {.doc = "Frames are mapped to this width and normalised before the convolutions; 0: not", .min = 0});
  v.section("encoder", encoder, "Speech encoder");
  v.section("decoder", decoder, "Prompt decoder");
}

SpeechModel::SpeechModel(const SpeechModelOptions& o, ParameterStore& store, int64_t vocabulary, int64_t ctc_vocabulary)
    : front_end_(Scope(store, "encoder.front_end"), o.features, o.feature_layers, o.feature_projection),
      encoder_(o.encoder, Scope(store, "encoder"), front_end_.width(), o.width),
      decoder_(o.decoder, Scope(store, "decoder"), o.width, vocabulary),
      has_ctc_(ctc_vocabulary > 0) {
  if (has_ctc_) ctc_ = Linear(Scope(store, "encoder.ctc_proj"), o.width, ctc_vocabulary, true);
}

SpeechModel::Encoded SpeechModel::encode(Pass& pass, const Var& features, const Segments& frames) const {
  ConvSubsampler::Output o = encoder_(pass, front_end_(pass, features), frames);
  return {o.rows, decoder_.prompt(pass, o.rows), o.segments};
}

Var SpeechModel::logits(Pass& pass, const SpeechBatch& batch, const Encoded& encoded) const {
  return decoder_.train(pass, batch.inputs, encoded.prompt, encoded.segments, batch.tokens);
}

SpeechLoss SpeechModel::loss(Pass& pass, const SpeechBatch& batch, const LossOptions& options) const {
  return loss(pass, batch, encode(pass, batch.features, batch.frames), options);
}

SpeechLoss SpeechModel::loss(Pass& pass, const SpeechBatch& batch, const Encoded& encoded,
                             const LossOptions& options) const {
  const CrossEntropy ce =
      cross_entropy(pass.tape, logits(pass, batch, encoded), batch.targets, options.label_smoothing);
  SpeechLoss result;
  result.total = ce.loss;
  result.smoothed = ce.loss.value();
  result.nll = ce.nll;
  result.correct = ce.correct;
  result.tokens = batch.tokens.rows();
  if (has_ctc_ && options.ctc_weight > 0 && batch.ctc.count() > 0) {
    const CtcLoss c = ctc_loss(pass.tape, ctc_(pass, encoded.states), encoded.segments, batch.ctc, batch.ctc_labels,
                               static_cast<int>(options.ctc_blank), options.ctc_zero_infinity);
    result.ctc = c.loss.value();
    for (int64_t i = 0; i < batch.ctc.count(); ++i) {
      const int64_t begin = batch.ctc.begin(i),
                    needed = frames_needed(batch.ctc_label_host, begin, begin + batch.ctc.length(i));
      result.ctc_infeasible += needed > encoded.segments.length(i);
    }
    result.total = weighted_sum(pass.tape, {ce.loss, c.loss}, {1, options.ctc_weight});
  }
  return result;
}

}  // namespace tactus
