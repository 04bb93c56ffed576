#include "train/tasks/speech_task.h"

namespace tactus {

Context make_context(const std::string& device, int64_t threads, int64_t memory_limit) {
  if (device == "cuda" || (device == "auto" && Context::cuda_available())) return Context::cuda(0, memory_limit);
  if (device != "auto" && device != "cpu") throw ConfigError("device: '" + device + "' is not auto, cpu or cuda");
  return Context::cpu(static_cast<int>(threads), memory_limit);
}

Vocabularies vocabularies_of(const RunOptions& options, const Corpus& corpus) {
  if (corpus.features().frame_width() == 0) {
    throw ConfigError("task " + options.task + " learns from speech, and " + corpus.path() +
                      " holds text; give it a corpus prepared with features.kind fbank or stored");
  }
  if (corpus.features().frame_width() != options.model.features) {
    throw ConfigError("model.features is " + std::to_string(options.model.features) + ", but " + corpus.path() +
                      " has " + std::to_string(corpus.features().frame_width()) + " feature bins; set it to that");
  }
  Vocabularies v{corpus.target_tokenizer().size(), 0};
  if (options.ctc_weight <= 0) return v;
  if (ctc_target_from_string(options.ctc_target) == CtcTarget::target) {
    v.ctc = v.target;
  } else if (corpus.source_tokenizer()) {
    v.ctc = corpus.source_tokenizer()->size();
  } else {
    throw ConfigError("ctc_target: source needs a corpus with a source tokenizer, which " + corpus.path() +
                      " lacks; prepare it with one, or use ctc_target: target");
  }
  return v;
}

SpeechTask::SpeechTask(const Context& ctx, const RunOptions& options, int64_t vocabulary, int64_t ctc_vocabulary,
                       bool training)
    : ctx_(ctx), options_(options), model_(options.model, store_, vocabulary, ctc_vocabulary), tables_(ctx) {
  // A CPU has no bf16 kernels: a run of a GPU configuration goes on in f32 there.
  const DType wanted = float_type_from_string(options.dtype);
  store_.allocate(ctx, ctx.device() == Device::cpu && wanted == DType::bf16 ? DType::f32 : wanted, training);
}

void SpeechTask::check_type(const Batch& batch) const {
  if (batch.dtype == compute_type()) return;
  throw ShapeError("features are " + to_string(batch.dtype) + ", the model computes in " + to_string(compute_type()) +
                   ": set BatchContents::dtype");
}

Tensor SpeechTask::features_to_device(const Batch& batch) const {
  const Shape shape = {batch.frames(), batch.bins};
  check_type(batch);
  if (batch.dtype == DType::bf16) return ctx_.upload(batch.features.as<bf16>(), shape);
  if (batch.dtype == DType::f64) return ctx_.upload(batch.features.as<double>(), shape);
  return ctx_.upload(batch.features.as<float>(), shape);
}

SpeechBatch SpeechTask::to_device(const Batch& batch) const {
  SpeechBatch b = text_to_device(batch);
  b.features = features_to_device(batch);
  return b;
}

SpeechBatch SpeechTask::to_device(Batch& batch, InputStream& input) const {
  check_type(batch);
  SpeechBatch b = text_to_device(batch);
  b.features = input.upload(std::move(batch.features), {batch.frames(), batch.bins}, batch.dtype);
  return b;
}

SpeechBatch SpeechTask::text_to_device(const Batch& batch) const {
  SpeechBatch b;
  b.frames = Segments(ctx_, batch.frame_lengths, batch.utterances);
  b.tokens = Segments(ctx_, batch.target_lengths, batch.utterances);
  b.inputs = TokenIndex::make(ctx_, batch.previous_tokens, model_.decoder().vocabulary());
  b.targets = ctx_.upload(batch.target_tokens);
  if (!batch.ctc_lengths.empty()) {
    b.ctc = Segments(ctx_, batch.ctc_lengths, batch.utterances);
    b.ctc_labels = ctx_.upload(batch.ctc_tokens);
    b.ctc_label_host = batch.ctc_tokens;
  }
  return b;
}

SpeechLoss SpeechTask::loss(Tape& tape, const SpeechBatch& batch, bool training, uint64_t key) {
  Pass pass{tape, tables_, training, key};
  LossOptions o;
  o.label_smoothing = options_.label_smoothing;
  o.ctc_weight = options_.ctc_weight;
  return model_.loss(pass, batch, o);
}

}  // namespace tactus
