#include "layers/models/encoder.h"

#include "autograd/pointwise.h"

namespace tactus {

void EncoderOptions::visit(ConfigVisitor& v) {
  v.field("layers", layers, {.doc = "Encoder layers", .min = 0, .max = 200});
  v.field("heads", heads, {.doc = "Attention heads of the encoder", .min = 1, .max = 256});
  v.field("ffn_dim", ffn_dim, {.doc = "Hidden width of the feed-forward layers", .min = 1});
  v.field("conv_channels", conv_channels, {.doc = "Channels of the inner convolutions, before their gate", .min = 2});
  v.field("conv_kernels", conv_kernels,
          {.doc = "Kernel of each convolution of the front end; each halves the length", .unit = "frames"});
  v.field("dropout", dropout, {.doc = "Dropout on residual branches and inputs", .min = 0, .max = 0.95});
  v.field("attention_dropout", attention_dropout, {.doc = "Dropout on attention weights", .min = 0, .max = 0.95});
  v.field("activation_dropout", activation_dropout, {.doc = "Dropout after the activation", .min = 0, .max = 0.95});
}

SpeechEncoder::SpeechEncoder(const EncoderOptions& o, const Scope& scope, int64_t features, int64_t width)
    : subsampler_(scope / "subsample", features, o.conv_channels, width, o.conv_kernels, 2),
      width_(width),
      dropout_(o.dropout),
      path_(hash_path(scope.path())) {
  if (width % o.heads) {
    throw ConfigError("model.encoder.heads: " + std::to_string(o.heads) + " heads do not divide the width " +
                      std::to_string(width));
  }
  AttentionOptions attention;
  attention.type = "mha";
  attention.heads = o.heads;
  attention.head_dim = width / o.heads;
  attention.dropout = o.attention_dropout;
  for (int64_t i = 0; i < o.layers; ++i) {
    const Scope s = scope / ("transformer_layers." + std::to_string(i));
    layers_.push_back({make_attention(attention, s / "self_attn", width, false),
                       LayerNorm(s / "self_attn_layer_norm", width), LayerNorm(s / "final_layer_norm", width),
                       FeedForward(s, width, o.ffn_dim, o.activation_dropout), hash_path(s.path())});
  }
  norm_ = LayerNorm(scope / "layer_norm", width);
}

Var SpeechEncoder::layer(Pass& pass, const Layer& l, const Var& x, const AttentionLayout& layout) const {
  const Var a = l.attention->train(pass, l.attention_norm(pass, x), {}, layout);
  const Var h = dropout_add(pass.tape, a, x, pass.dropout(l.path, 1, dropout_), *layout.own);
  const Var f = l.ffn(pass, l.final_norm(pass, h), *layout.own);
  return dropout_add(pass.tape, f, h, pass.dropout(l.path, 2, dropout_), *layout.own);
}

ConvSubsampler::Output SpeechEncoder::operator()(Pass& pass, const Var& features, const Segments& segments) const {
  ConvSubsampler::Output o = subsampler_(pass, features, segments);
  const DType acc = accumulator_of(features.value().dtype());
  // fairseq numbers real positions from 2 (padding index 1).
  const Tensor& positions = pass.tables.sinusoid(o.segments.longest(), width_, 2, acc);
  Var x = scale_add_table(pass.tape, o.rows, std::sqrt(static_cast<double>(width_)), positions, o.segments);
  x = dropout_add(pass.tape, x, {}, pass.dropout(path_, 0, dropout_), o.segments);
  const AttentionLayout layout = make_layout(pass.ctx(), nullptr, o.segments, false);
  for (const Layer& l : layers_) x = layer(pass, l, x, layout);
  return {norm_(pass, x), o.segments};
}

}  // namespace tactus
