// Pre-norm Transformer encoder for speech (the one of the MTLA paper): convolutional subsampler, scaled sinusoidal
// positions, layers of full multi-head attention and feed-forward, final norm.
#pragma once

#include "layers/attention/attention.h"
#include "layers/blocks/feed_forward.h"
#include "layers/blocks/subsampler.h"

namespace tactus {

struct EncoderOptions {
  int64_t layers = 12;
  int64_t heads = 8;
  int64_t ffn_dim = 2048;
  int64_t conv_channels = 1024;
  std::vector<int64_t> conv_kernels = {5, 5};
  double dropout = 0.15, attention_dropout = 0.15, activation_dropout = 0.15;
  void visit(ConfigVisitor& v);
};

class SpeechEncoder {
 public:
  SpeechEncoder(const EncoderOptions& options, const Scope& scope, int64_t features, int64_t width);
  int64_t out_length(int64_t frames) const { return subsampler_.out_length(frames); }
  /// features [rows, features] -> encoder states and their segments.
  ConvSubsampler::Output operator()(Pass& pass, const Var& features, const Segments& segments) const;

 private:
  struct Layer {
    std::unique_ptr<Attention> attention;
    LayerNorm attention_norm, final_norm;
    FeedForward ffn;
    uint64_t path;
  };
  Var layer(Pass& pass, const Layer& l, const Var& x, const AttentionLayout& layout) const;
  ConvSubsampler subsampler_;
  std::vector<Layer> layers_;
  LayerNorm norm_;
  int64_t width_;
  double dropout_;
  uint64_t path_;
};

}  // namespace tactus
