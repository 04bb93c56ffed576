// A small speech model with random weights and batches for it.
#pragma once

#include "layers/models/speech_model.h"
#include "tests/laws/laws.h"

namespace tactus::laws {

constexpr int64_t kFeatures = 6, kModelWidth = 24;
constexpr int32_t kPad = 1, kEos = 2;

struct Utterance {
  int32_t id;
  int64_t frames;
  std::vector<double> features;
  std::vector<int32_t> tokens;  ///< without eos
  std::vector<int32_t> inputs() const {
    std::vector<int32_t> v = {kEos};
    v.insert(v.end(), tokens.begin(), tokens.end());
    return v;
  }
  std::vector<int32_t> targets() const {
    std::vector<int32_t> v = tokens;
    v.push_back(kEos);
    return v;
  }
};

class Speech {
 public:
  Speech(const Context& ctx, const Case& c, int64_t vocabulary, double dropout = 0)
      : ctx_(ctx), dtype_(c.dtype), vocabulary_(vocabulary) {
    SpeechModelOptions o;
    o.width = kModelWidth;
    o.features = kFeatures;
    o.encoder = {2, 4, 32, 16, {5, 3}, dropout, dropout, dropout};
    o.decoder.layers = 2;
    o.decoder.ffn_dim = 32;
    o.decoder.projector_dim = 12;
    o.decoder.dropout = o.decoder.activation_dropout = dropout;
    o.decoder.attention = options_of(c);
    o.decoder.attention.dropout = dropout;
    o.decoder.tied_embeddings = c.widths == Widths::odd;
    model_ = std::make_unique<SpeechModel>(o, store_, vocabulary, vocabulary);
    store_.allocate(ctx, c.dtype, true);
    store_.initialise(3);
  }
  const SpeechModel* operator->() const { return model_.get(); }
  const SpeechModel& operator*() const { return *model_; }
  ParameterStore& store() { return store_; }
  const Context& ctx() const { return ctx_; }
  DType dtype() const { return dtype_; }
  int64_t vocabulary() const { return vocabulary_; }

  std::vector<Utterance> utterances(const std::vector<int64_t>& frames, const std::vector<int64_t>& tokens) const {
    std::vector<Utterance> out;
    Rng rng(29);
    for (size_t i = 0; i < frames.size(); ++i) {
      Utterance u{static_cast<int32_t>(50 - 3 * i), frames[i], normals(frames[i] * kFeatures, 200 + i), {}};
      for (int64_t t = 0; t < tokens[i]; ++t)
        u.tokens.push_back(3 + static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocabulary_ - 3))));
      out.push_back(u);
    }
    return out;
  }

  SpeechBatch batch(const std::vector<Utterance>& utterances) const {
    std::vector<double> features;
    std::vector<int32_t> ids, inputs, targets;
    std::vector<int64_t> frames, lengths;
    for (const Utterance& u : utterances) {
      append(features, u.features);
      const std::vector<int32_t> in = u.inputs(), out = u.targets();
      inputs.insert(inputs.end(), in.begin(), in.end());
      targets.insert(targets.end(), out.begin(), out.end());
      frames.push_back(u.frames);
      lengths.push_back(static_cast<int64_t>(in.size()));
      ids.push_back(u.id);
    }
    SpeechBatch b;
    b.frames = Segments(ctx_, frames, ids);
    b.features = ctx_.upload_real(features, {b.frames.rows(), kFeatures}, dtype_);
    b.inputs = TokenIndex::make(ctx_, inputs, vocabulary_);
    b.targets = ctx_.upload(targets);
    b.tokens = Segments(ctx_, lengths, ids);
    b.ctc = b.tokens;
    b.ctc_labels = b.targets;
    b.ctc_label_host = targets;
    return b;
  }

 private:
  Context ctx_;
  DType dtype_;
  int64_t vocabulary_;
  ParameterStore store_;
  std::unique_ptr<SpeechModel> model_;
};

}  // namespace tactus::laws
