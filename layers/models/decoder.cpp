#include "layers/models/decoder.h"

namespace tactus {
namespace {

constexpr int64_t kPadding = 1;  // row of the embedding that starts at zero

}  // namespace

void DecoderOptions::visit(ConfigVisitor& v) {
  v.field("layers", layers, {.doc = "Decoder layers", .min = 1, .max = 200});
  v.field("ffn_dim", ffn_dim, {.doc = "Hidden width of the feed-forward layers", .min = 1});
  v.field("projector_dim", projector_dim,
          {.doc = "Hidden width of the projector between encoder and prompt", .min = 1});
  v.field("tied_embeddings", tied_embeddings, {.doc = "Use the token embedding as output projection"});
  v.field("final_norm", final_norm, {.doc = "Layer norm before the output projection"});
  v.field("dropout", dropout, {.doc = "Dropout on residual branches and inputs", .min = 0, .max = 0.95});
  v.field("activation_dropout", activation_dropout, {.doc = "Dropout after the activation", .min = 0, .max = 0.95});
  v.section("attention", attention, "Attention of the decoder");
}

int64_t DecoderState::payload() const {
  int64_t bytes = 0;
  for (const auto& c : caches) bytes += c->payload();
  return bytes;
}

int64_t DecoderState::payload_unshared() const {
  int64_t bytes = 0;
  for (const auto& c : caches) bytes += c->payload_unshared();
  return bytes;
}

int64_t DecoderState::reserved() const {
  int64_t bytes = positions.bytes();
  for (const auto& c : caches) bytes += c->reserved();
  return bytes;
}

PromptDecoder::PromptDecoder(const DecoderOptions& o, const Scope& scope, int64_t width, int64_t vocabulary)
    : final_norm_(o.final_norm),
      width_(width),
      vocabulary_(vocabulary),
      dropout_(o.dropout),
      path_(hash_path(scope.path())) {
  const Init embedding_init = Init::normal(1 / std::sqrt(static_cast<double>(width)), kPadding);
  embedding_ = &(scope / "embed_tokens").add("weight", {vocabulary, width}, embedding_init);
  if (o.tied_embeddings) {
    (scope / "output_projection").alias("weight", *embedding_);
    output_ = embedding_;
  }
  projector1_ = Linear(scope / "projector.linear1", width, o.projector_dim, true);
  projector2_ = Linear(scope / "projector.linear2", o.projector_dim, width, true);
  for (int64_t i = 0; i < o.layers; ++i) {
    const Scope s = scope / ("layers." + std::to_string(i));
    layers_.push_back({make_attention(o.attention, s / "self_attn", width),
                       LayerNorm(s / "self_attn_layer_norm", width), LayerNorm(s / "final_layer_norm", width),
                       FeedForward(s, width, o.ffn_dim, o.activation_dropout), hash_path(s.path())});
  }
  if (final_norm_) norm_ = LayerNorm(scope / "layer_norm", width);
  if (!output_) {
    output_ = &(scope / "output_projection")
                   .add("weight", {vocabulary, width}, Init::normal(1 / std::sqrt(static_cast<double>(width))));
  }
}

Var PromptDecoder::prompt(Pass& pass, const Var& encoder) const {
  return projector2_(pass, projector1_(pass, encoder, {.relu = true}));
}

Var PromptDecoder::embed(Pass& pass, const TokenIndex& tokens) const {
  return embedding(pass.tape, pass.param(embedding_), tokens, std::sqrt(static_cast<double>(width_)));
}

Var PromptDecoder::rest_of_layer(Pass& pass, const Layer& l, const Var& a, const Var& y, const Segments& own) const {
  const Var h = l.attention_norm(pass, dropout_add(pass.tape, a, y, pass.dropout(l.path, 1, dropout_), own));
  const Var f = l.ffn(pass, h, own);
  return l.final_norm(pass, dropout_add(pass.tape, f, h, pass.dropout(l.path, 2, dropout_), own));
}

Var PromptDecoder::output(Pass& pass, const Var& y) const {
  return linear(pass.tape, final_norm_ ? norm_(pass, y) : y, pass.param(output_), {});
}

Var PromptDecoder::train(Pass& pass, const TokenIndex& tokens, const Var& prompt, const Segments& prompt_segments,
                         const Segments& own) const {
  const AttentionLayout layout = make_layout(pass.ctx(), &prompt_segments, own, true);
  Var y = dropout_add(pass.tape, embed(pass, tokens), {}, pass.dropout(path_, 0, dropout_), own);
  for (const Layer& l : layers_) {
    const Var a = l.attention->train(pass, l.attention_norm(pass, y), prompt, layout);
    y = rest_of_layer(pass, l, a, y, own);
  }
  return output(pass, y);
}

DecoderState PromptDecoder::start(Pass& pass, const Var& prompt, const Segments& segments, int64_t max_rows,
                                  int64_t max_new) const {
  const Context& ctx = pass.ctx();
  DecoderState state;
  state.rows = segments.count();
  std::vector<int32_t> first, positions;
  for (int64_t i = 0; i < segments.count(); ++i) {
    first.push_back(static_cast<int32_t>(segments.length(i)));
    for (int64_t t = 0; t < segments.length(i); ++t) positions.push_back(static_cast<int32_t>(t));
  }
  state.positions = ctx.zeros({max_rows}, DType::i32, MemoryTag::cache);
  ctx.copy(state.positions.slice(0, state.rows), ctx.upload(first, MemoryTag::workspace));
  const Tensor prompt_positions = ctx.upload(positions, MemoryTag::workspace);
  for (const Layer& l : layers_) {
    state.caches.push_back(l.attention->new_cache(ctx, prompt.value().dtype(), segments, max_rows, max_new));
    l.attention->prefill(pass, prompt, segments, prompt_positions, *state.caches.back());
  }
  return state;
}

Var PromptDecoder::step(Pass& pass, const TokenIndex& tokens, DecoderState& state) const {
  const Context& ctx = pass.ctx();
  const Segments none;  // dropout is off when decoding, so nothing asks whose rows these are
  Var y = embed(pass, tokens);
  const Tensor positions = state.positions.slice(0, state.rows);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& l = layers_[i];
    const Var a = l.attention->step(pass, l.attention_norm(pass, y), positions, *state.caches[i]);
    y = rest_of_layer(pass, l, a, y, none);
  }
  dispatch(ctx, y.value().dtype(),
           [&]<class D, class T>() { add_to_all<D>(ctx, state.rows, 1, positions.data<int32_t>()); });
  return output(pass, y);
}

void PromptDecoder::reorder(Pass& pass, DecoderState& state, const std::vector<int32_t>& parents) const {
  const Context& ctx = pass.ctx();
  const std::vector<int32_t> before = ctx.download<int32_t>(state.positions.slice(0, state.rows));
  std::vector<int32_t> after;
  for (int32_t p : parents) after.push_back(before.at(static_cast<size_t>(p)));
  state.rows = static_cast<int64_t>(parents.size());
  ctx.copy(state.positions.slice(0, state.rows), ctx.upload(after, MemoryTag::workspace));
  for (auto& cache : state.caches) cache->reorder(parents);
}

}  // namespace tactus
