// Decoder-only translation model of the MTLA paper: the projected encoder states are a prompt that every layer's
// attention sees as keys. Its layers apply the same norm before attention and after its residual, and the feed-forward
// residual is the normalised value:
//   a = LN1(y);  h = LN1(y + drop(attn(a; prompt)));  y' = LN2(h + drop(ffn(h)))
#pragma once

#include "autograd/embedding.h"
#include "layers/attention/attention.h"
#include "layers/blocks/feed_forward.h"

namespace tactus {

struct DecoderOptions {
  int64_t layers = 9;
  int64_t ffn_dim = 2048;
  int64_t projector_dim = 256;
  bool tied_embeddings = false;
  bool final_norm = true;
  double dropout = 0.15, activation_dropout = 0.15;
  AttentionOptions attention;
  void visit(ConfigVisitor& v);
};

/// Caches of all layers for a set of hypotheses.
struct DecoderState {
  std::vector<std::unique_ptr<AttentionCache>> caches;
  Tensor positions;  ///< i32 [max_rows], position of the row that the next step adds
  int64_t rows = 0;
  int64_t payload() const;
  int64_t payload_unshared() const;
  int64_t reserved() const;
};

class PromptDecoder {
 public:
  PromptDecoder(const DecoderOptions& options, const Scope& scope, int64_t width, int64_t vocabulary);

  /// The prompt: Linear(ReLU(Linear(encoder states))), no norm, the same for all layers.
  Var prompt(Pass& pass, const Var& encoder) const;
  /// Logits [own rows, vocabulary] of decoder input tokens, teacher-forced.
  Var train(Pass& pass, const TokenIndex& tokens, const Var& prompt, const Segments& prompt_segments,
            const Segments& own) const;

  /// Caches filled with the prompt; one hypothesis an utterance, up to max_rows after reorder, max_new steps.
  DecoderState start(Pass& pass, const Var& prompt, const Segments& segments, int64_t max_rows, int64_t max_new) const;
  /// Logits [rows, vocabulary] after one more input token for each hypothesis.
  Var step(Pass& pass, const TokenIndex& tokens, DecoderState& state) const;
  void reorder(Pass& pass, DecoderState& state, const std::vector<int32_t>& parents) const;

  const Attention& attention() const { return *layers_.front().attention; }
  int64_t layers() const { return static_cast<int64_t>(layers_.size()); }
  int64_t vocabulary() const { return vocabulary_; }

 private:
  struct Layer {
    std::unique_ptr<Attention> attention;
    LayerNorm attention_norm, final_norm;
    FeedForward ffn;
    uint64_t path;
  };
  Var embed(Pass& pass, const TokenIndex& tokens) const;
  /// The part of a layer after attention; a is the attention output, y the layer's input.
  Var rest_of_layer(Pass& pass, const Layer& l, const Var& a, const Var& y, const Segments& own) const;
  Var output(Pass& pass, const Var& y) const;

  std::vector<Layer> layers_;
  Parameter* embedding_;
  Parameter* output_ = nullptr;
  Linear projector1_, projector2_;
  LayerNorm norm_;
  bool final_norm_;
  int64_t width_, vocabulary_;
  double dropout_;
  uint64_t path_;
};

}  // namespace tactus
