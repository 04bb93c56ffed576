#include "layers/attention/latent.h"

#include <algorithm>

#include "autograd/attention.h"
#include "autograd/mtla.h"
#include "autograd/rope.h"
#include "kernels/gemm.h"
#include "kernels/pointwise.h"

namespace tactus {

LatentAttention::LatentAttention(const AttentionOptions& o, const Scope& scope, int64_t width)
    : heads_(o.heads),
      latent_(o.kv_lora_rank),
      nope_(o.qk_nope_head_dim),
      rope_(o.qk_rope_head_dim),
      value_(o.v_head_dim),
      stride_(o.type == "mtla" ? o.stride : 1),
      hyper_(o.hyper_dim > 0 ? o.hyper_dim : o.kv_lora_rank / 4),
      gated_(o.type == "mtla"),
      theta_(o.rope_theta),
      dropout_(o.dropout),
      path_(hash_path(scope.path())),
      low_rank_query_(o.q_lora_rank > 0) {
  if (rope_ % 2)
    throw ConfigError("attention.qk_rope_head_dim: rotation needs an even width, not " + std::to_string(rope_));
  if (gated_ && latent_ % 2)
    throw ConfigError("attention.kv_lora_rank: the chunk code needs an even width, not " + std::to_string(latent_));
  if (gated_ && hyper_ < 1) throw ConfigError("attention.kv_lora_rank: mtla needs at least 4 for its gate network");
  const int64_t q_width = heads_ * head_width();
  if (low_rank_query_) {
    wq_a_ = Linear(scope / "wq_a", width, o.q_lora_rank, false);
    q_norm_ = LayerNorm(scope / "q_norm", o.q_lora_rank);
    wq_b_ = Linear(scope / "wq_b", o.q_lora_rank, q_width, false);
  } else {
    wq_ = Linear(scope / "wq", width, q_width, false);
  }
  wkv_a_ = Linear(scope / "wkv_a", width, latent_ + rope_, false);
  kv_norm_ = LayerNorm(scope / "kv_norm", latent_);
  wkv_b_ = Linear(scope / "wkv_b", latent_, heads_ * (nope_ + value_), false);
  wo_ = Linear(scope / "wo", heads_ * value_, width, false);
  if (gated_) {
    fc_c_ = Linear(scope / "hypernet_down.fc_c", latent_, hyper_, true);
    fc_p_ = Linear(scope / "hypernet_down.fc_p", latent_, hyper_, true);
  }
}

AttentionCost LatentAttention::cost(int64_t length) const {
  const int64_t slots = (length + stride_ - 1) / stride_;
  return {slots * (latent_ + rope_), static_cast<double>(slots * heads_ * (2 * latent_ + rope_))};
}

Var LatentAttention::queries(Pass& pass, const Var& x, const Tensor& positions, int64_t longest) const {
  const Var q = low_rank_query_ ? wq_b_(pass, q_norm_(pass, wq_a_(pass, x))) : wq_(pass, x);
  const DType acc = accumulator_of(q.value().dtype());
  return rope(pass.tape, q, static_cast<int>(heads_), head_width(), nope_, rope_, positions,
              pass.tables.rope(longest, rope_, theta_, acc));
}

LatentAttention::Latents LatentAttention::latents(Pass& pass, const Var& x, const Tensor& positions,
                                                  int64_t longest) const {
  const Var kv = wkv_a_(pass, x);
  const DType acc = accumulator_of(kv.value().dtype());
  return {kv_norm_(pass, {kv, 0, latent_}), rope(pass.tape, {kv, latent_, latent_ + rope_}, 1, rope_, 0, rope_,
                                                 positions, pass.tables.rope(longest, rope_, theta_, acc))};
}

Var LatentAttention::gate_code(Pass& pass, int64_t longest, DType dtype) const {
  const int64_t chunks = std::max<int64_t>(1, (longest + stride_ - 1) / stride_);
  return fc_c_(pass, pass.tape.constant(pass.tables.chunk_code(chunks, latent_, dtype).slice(0, chunks)));
}

LatentAttention::Sums LatentAttention::compress(Pass& pass, const Var& prompt_c, const Var& own_c,
                                                const Segments* prompt, const Segments& own, int64_t longest) const {
  if (!gated_) return {prompt_c, own_c};
  GateInput prompt_in, own_in{own_c, fc_p_(pass, own_c)};
  if (prompt_c.defined()) prompt_in = {prompt_c, fc_p_(pass, prompt_c)};
  GateSum sums = gate_sum(pass.tape, prompt_in, own_in, gate_code(pass, longest, own_c.value().dtype()), prompt, own,
                          static_cast<int>(stride_));
  return {sums.prompt, sums.own};
}

Var LatentAttention::train(Pass& pass, const Var& own, const Var& prompt, const AttentionLayout& layout) const {
  AttentionShape shape;
  shape.heads = shape.kv_heads = static_cast<int>(heads_);
  shape.d_key = static_cast<int>(nope_);
  shape.d_shared = static_cast<int>(rope_);
  shape.d_value = static_cast<int>(value_);
  shape.stride = static_cast<int>(stride_);
  shape.causal = layout.causal;
  shape.scale = scale();
  shape.dropout = pass.dropout(path_, 0, dropout_);

  const Latents own_latents = latents(pass, own, layout.own_positions, layout.longest);
  Latents prompt_latents;
  if (prompt.defined()) prompt_latents = latents(pass, prompt, layout.prompt_positions, layout.longest);
  const Sums sums = compress(pass, prompt_latents.c, own_latents.c, layout.prompt, *layout.own, layout.longest);

  const int64_t keys = heads_ * nope_, all = keys + heads_ * value_;
  auto expand = [&](const Var& c, const Var& k_rope) -> KeyInput {
    const Var kv = wkv_b_(pass, c);
    return {{kv, 0, keys}, k_rope, {kv, keys, all}};
  };
  const KeyInput own_keys = expand(sums.own, own_latents.k_rope);
  KeyInput prompt_keys;
  if (prompt.defined()) prompt_keys = expand(sums.prompt, prompt_latents.k_rope);
  const Var q = queries(pass, own, layout.own_positions, layout.longest);
  return wo_(pass, attention(pass.tape, shape, q, prompt_keys, own_keys, layout.prompt, *layout.own));
}

std::unique_ptr<AttentionCache> LatentAttention::new_cache(const Context& ctx, DType dtype, const Segments& prompt,
                                                           int64_t max_rows, int64_t max_new) const {
  const AttentionCache::Shape shape{latent_ + rope_, gated_ ? latent_ : 0, stride_};
  return std::make_unique<AttentionCache>(ctx, dtype, shape, prompt, max_rows, max_new);
}

void LatentAttention::prefill(Pass& pass, const Var& rows, const Segments& segments, const Tensor& positions,
                              AttentionCache& cache) const {
  if (rows.rows() == 0) return;
  const Latents l = latents(pass, rows, positions, segments.longest());
  const Var sums = compress(pass, {}, l.c, nullptr, segments, segments.longest()).own;
  dispatch(pass.ctx(), sums.value().dtype(), [&]<class D, class T>() {
    const Context& ctx = pass.ctx();
    using A = acc_t<T>;
    const Mat<const T> c = sums.value().mat<const T>(), k = l.k_rope.value().mat<const T>();
    Mat<T> slots = cache.shared().mat<T>();
    gather_rows<D, T>(ctx, c, cache.slot_rows().data<int32_t>(), slots.columns(0, latent_));
    gather_rows<D, T>(ctx, k, cache.slot_rows().data<int32_t>(), slots.columns(latent_, latent_ + rope_));
    if (stride_ == 1) return;
    // The unfinished chunk: first tail slot of each hypothesis, which at this time is one per utterance.
    Mat<T> tail = cache.tail().mat<T>();
    const Mat<T> first{tail.ptr, cache.rows(), tail.cols, tail.ld * cache.max_tail()};
    gather_rows<D, T>(ctx, c, cache.rest_rows().data<int32_t>(), first.columns(0, latent_));
    gather_rows<D, T>(ctx, k, cache.rest_rows().data<int32_t>(), first.columns(latent_, latent_ + rope_));
    const Tensor rest = ctx.empty({cache.rows(), latent_}, sums.value().dtype(), MemoryTag::workspace);
    axpby<D, T>(ctx, 1, first.columns(0, latent_), 0, rest.mat<T>());
    cast<D, T, A>(ctx, rest.elements(), rest.data<T>(), cache.live().data<A>());
  });
}

template <class D, class T>
void LatentAttention::absorbed_step(Pass& pass, const Var& q, AttentionCache& cache, Tensor& out) const {
  const Context& ctx = pass.ctx();
  const int64_t n = q.rows(), slot = latent_ + rope_;
  const Tensor absorbed = ctx.empty({n, heads_ * slot}, q.value().dtype());
  const Mat<const T> wkv = wkv_b_.weight().value.mat<const T>();
  const Mat<const T> queries = q.value().mat<const T>();
  GemmOptions<T> to_latent;
  to_latent.batch = heads_;
  to_latent.stride_a = head_width();
  to_latent.stride_b = nope_ * latent_;
  to_latent.stride_c = slot;
  gemm<D, T, T>(ctx, queries.columns(0, nope_), wkv.slice(0, nope_), absorbed.mat<T>().columns(0, latent_), to_latent);
  // Heads are evenly spaced, so the rope parts of all rows and heads form one matrix on each side.
  const Mat<const T> rope_from{queries.ptr + nope_, n * heads_, rope_, head_width()};
  const Mat<T> rope_to{absorbed.data<T>() + latent_, n * heads_, rope_, slot};
  axpby<D, T>(ctx, 1, rope_from, 0, rope_to);

  const Tensor mixed = ctx.empty({n, heads_ * latent_}, q.value().dtype());
  DecodeShape shape{static_cast<int>(heads_), 1, static_cast<int>(slot), static_cast<int>(latent_), scale()};
  attention_decode<D, T>(ctx, shape, cache.view<T>(slot, 0, latent_), absorbed.mat<const T>(), mixed.mat<T>());

  out = ctx.empty({n, heads_ * value_}, q.value().dtype());
  GemmOptions<T> to_values;
  to_values.transpose_b = true;
  to_values.batch = heads_;
  to_values.stride_a = latent_;
  to_values.stride_b = value_ * latent_;
  to_values.stride_c = value_;
  const int64_t keys = heads_ * nope_;
  gemm<D, T, T>(ctx, mixed.mat<const T>().columns(0, latent_), wkv.slice(keys, keys + value_),
                out.mat<T>().columns(0, value_), to_values);
}

Var LatentAttention::step(Pass& pass, const Var& x, const Tensor& positions, AttentionCache& cache) const {
  const Context& ctx = pass.ctx();
  cache.begin_step();
  const int64_t longest = cache.capacity(), slot = latent_ + rope_;
  const Latents l = latents(pass, x, positions, longest);
  const Var q = queries(pass, x, positions, longest);
  const Var p = gated_ ? fc_p_(pass, l.c) : Var();
  // Codes of all chunks that can come, once: a step costs the same at every length.
  if (gated_ && !cache.table().defined()) cache.table() = gate_code(pass, longest, l.c.value().dtype()).value();
  Tensor out;
  dispatch(ctx, x.value().dtype(), [&]<class D, class T>() {
    Mat<T> tail = cache.tail().mat<T>();
    int32_t* length = cache.tail_length().data<int32_t>();
    const Mat<const T> c = l.c.value().mat<const T>(), k = l.k_rope.value().mat<const T>();
    if (gated_) {
      mtla_append<D, T>(ctx, static_cast<int>(stride_), c, p.value().mat<const T>(), cache.table().mat<const T>(), k,
                        positions.data<int32_t>(), length, cache.max_tail(), cache.live().mat<acc_t<T>>(), tail);
    } else {
      tail_append<D, T>(ctx, c, length, cache.max_tail(), tail.columns(0, latent_));
      tail_append<D, T>(ctx, k, length, cache.max_tail(), tail.columns(latent_, slot));
      add_to_all<D>(ctx, x.rows(), 1, length);
    }
    absorbed_step<D, T>(pass, q, cache, out);
  });
  return wo_(pass, Var(out));
}

}  // namespace tactus
