// Speech-to-text model: speech encoder, prompt decoder, label-smoothed cross-entropy and, when asked for, CTC on the
// encoder states.
#pragma once

#include "autograd/losses.h"
#include "layers/blocks/feature_front_end.h"
#include "layers/models/decoder.h"
#include "layers/models/encoder.h"

namespace tactus {

struct SpeechModelOptions {
  int64_t width = 512;
  int64_t features = 80;
  int64_t feature_layers = 1, feature_projection = 0;
  EncoderOptions encoder;
  DecoderOptions decoder;
  void visit(ConfigVisitor& v);
};

/// One packed batch on the device.
struct SpeechBatch {
  Tensor features;    ///< [frames.rows, features] in the compute type
  Segments frames;    ///< lengths in frames, with utterance ids
  TokenIndex inputs;  ///< decoder inputs, packed by `tokens`
  Tensor targets;     ///< i32 [tokens.rows], -1 = no loss
  Segments tokens;
  Tensor ctc_labels;                    ///< i32 [ctc.rows]
  Segments ctc;                         ///< no segments: no CTC loss for this batch
  std::vector<int32_t> ctc_label_host;  ///< the same labels, to count infeasible utterances
};

struct LossOptions {
  double label_smoothing = 0.1;
  double ctc_weight = 0;  ///< 0: no CTC
  int64_t ctc_blank = 0;
  bool ctc_zero_infinity = true;
};

struct SpeechLoss {
  Var total;                  ///< summed over the batch, not divided by anything
  Tensor smoothed, nll, ctc;  ///< one element each in acc type; ctc undefined without CTC
  Tensor correct;             ///< i32 per target row
  int64_t tokens = 0;
  int64_t ctc_infeasible = 0;  ///< utterances whose labels do not fit their frames
};

class SpeechModel {
 public:
  /// ctc_vocabulary 0: no CTC head.
  SpeechModel(const SpeechModelOptions& options, ParameterStore& store, int64_t vocabulary, int64_t ctc_vocabulary = 0);

  struct Encoded {
    Var states, prompt;
    Segments segments;
  };
  Encoded encode(Pass& pass, const Var& features, const Segments& frames) const;
  Encoded encode(Pass& pass, const Tensor& features, const Segments& frames) const {
    return encode(pass, pass.tape.constant(features), frames);
  }
  SpeechLoss loss(Pass& pass, const SpeechBatch& batch, const LossOptions& options) const;
  /// The same from encoder states that are there already.
  SpeechLoss loss(Pass& pass, const SpeechBatch& batch, const Encoded& encoded, const LossOptions& options) const;
  Var logits(Pass& pass, const SpeechBatch& batch, const Encoded& encoded) const;
  const SpeechEncoder& encoder() const { return encoder_; }
  const PromptDecoder& decoder() const { return decoder_; }

 private:
  FeatureFrontEnd front_end_;
  SpeechEncoder encoder_;
  PromptDecoder decoder_;
  Linear ctc_;
  bool has_ctc_;
};

}  // namespace tactus
