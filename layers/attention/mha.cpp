#include "layers/attention/mha.h"

#include "autograd/attention.h"
#include "autograd/rope.h"
#include "kernels/pointwise.h"

namespace tactus {
namespace {

int64_t groups_of(const AttentionOptions& o) {
  if (o.type == "mha") return o.heads;
  if (o.type == "mqa") return 1;
  if (o.kv_heads < 1 || o.heads % o.kv_heads != 0) {
    throw ConfigError("attention.kv_heads: " + std::to_string(o.kv_heads) + " groups do not divide " +
                      std::to_string(o.heads) + " heads");
  }
  return o.kv_heads;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const AttentionOptions& o, const Scope& scope, int64_t width, bool rope)
    : heads_(o.heads),
      kv_heads_(groups_of(o)),
      head_dim_(o.head_dim),
      rope_(rope),
      theta_(o.rope_theta),
      dropout_(o.dropout),
      path_(hash_path(scope.path())) {
  if (rope && head_dim_ % 2)
    throw ConfigError("attention.head_dim: rotation needs an even width, not " + std::to_string(head_dim_));
  // Xavier bound of a square projection; the fused matrix must not change the scale of its parts.
  const double bound = std::sqrt(3.0 / static_cast<double>(width));
  const Init qkv_init = Init::uniform(rope ? 1 / std::sqrt(static_cast<double>(width)) : bound / std::sqrt(2.0));
  qkv_ = Linear(scope / "qkv", width, q_width() + 2 * kv_width(), true, qkv_init);
  out_ = Linear(scope / "out_proj", q_width(), width, true,
                Init::uniform(rope ? 1 / std::sqrt(static_cast<double>(q_width())) : bound));
}

AttentionCost MultiHeadAttention::cost(int64_t length) const {
  return {length * 2 * kv_width(), 2.0 * static_cast<double>(length * q_width())};
}

Slice MultiHeadAttention::rotated(Pass& pass, const Slice& x, int64_t heads, const Tensor& positions,
                                  int64_t longest) const {
  if (!rope_) return x;
  const DType acc = accumulator_of(x.var.value().dtype());
  return rope(pass.tape, x, static_cast<int>(heads), head_dim_, 0, head_dim_, positions,
              pass.tables.rope(longest, head_dim_, theta_, acc));
}

Var MultiHeadAttention::train(Pass& pass, const Var& own, const Var& prompt, const AttentionLayout& layout) const {
  AttentionShape shape;
  shape.heads = static_cast<int>(heads_);
  shape.kv_heads = static_cast<int>(kv_heads_);
  shape.d_key = shape.d_value = static_cast<int>(head_dim_);
  shape.causal = layout.causal;
  shape.scale = 1 / std::sqrt(static_cast<double>(head_dim_));
  shape.dropout = pass.dropout(path_, 0, dropout_);

  const int64_t q = q_width(), kv = kv_width();
  const Var projected = qkv_(pass, own);
  const Slice queries = rotated(pass, {projected, 0, q}, heads_, layout.own_positions, layout.longest);
  KeyInput own_keys{rotated(pass, {projected, q, q + kv}, kv_heads_, layout.own_positions, layout.longest),
                    {},
                    {projected, q + kv, q + 2 * kv}};
  KeyInput prompt_keys;
  if (prompt.defined()) {
    const Var p = qkv_(pass, prompt, {.out_begin = q, .out_end = q + 2 * kv});
    prompt_keys = {rotated(pass, {p, 0, kv}, kv_heads_, layout.prompt_positions, layout.longest), {}, {p, kv, 2 * kv}};
  }
  return out_(pass, attention(pass.tape, shape, queries, prompt_keys, own_keys, layout.prompt, *layout.own));
}

std::unique_ptr<AttentionCache> MultiHeadAttention::new_cache(const Context& ctx, DType dtype, const Segments& prompt,
                                                              int64_t max_rows, int64_t max_new) const {
  return std::make_unique<AttentionCache>(ctx, dtype, AttentionCache::Shape{2 * kv_width(), 0, 1}, prompt, max_rows,
                                          max_new);
}

void MultiHeadAttention::prefill(Pass& pass, const Var& rows, const Segments& segments, const Tensor& positions,
                                 AttentionCache& cache) const {
  if (rows.rows() == 0) return;
  const int64_t q = q_width(), kv = kv_width();
  const Var p = qkv_(pass, rows, {.out_begin = q, .out_end = q + 2 * kv});
  const Slice k = rotated(pass, {p, 0, kv}, kv_heads_, positions, segments.longest());
  dispatch(pass.ctx(), p.value().dtype(), [&]<class D, class T>() {
    Mat<T> slots = cache.shared().mat<T>();
    axpby<D, T>(pass.ctx(), 1, k.mat<T>(), 0, slots.columns(0, kv));
    axpby<D, T>(pass.ctx(), 1, p.value().mat<const T>().columns(kv, 2 * kv), 0, slots.columns(kv, 2 * kv));
  });
}

Var MultiHeadAttention::step(Pass& pass, const Var& x, const Tensor& positions, AttentionCache& cache) const {
  const Context& ctx = pass.ctx();
  cache.begin_step();
  const int64_t q = q_width(), kv = kv_width(), longest = cache.capacity();
  const Var projected = qkv_(pass, x);
  const Slice queries = rotated(pass, {projected, 0, q}, heads_, positions, longest);
  const Slice keys = rotated(pass, {projected, q, q + kv}, kv_heads_, positions, longest);
  const Tensor out = ctx.empty({x.rows(), q}, x.value().dtype());
  dispatch(ctx, out.dtype(), [&]<class D, class T>() {
    Mat<T> tail = cache.tail().mat<T>();
    int32_t* length = cache.tail_length().data<int32_t>();
    tail_append<D, T>(ctx, keys.mat<T>(), length, cache.max_tail(), tail.columns(0, kv));
    tail_append<D, T>(ctx, projected.value().mat<const T>().columns(q + kv, q + 2 * kv), length, cache.max_tail(),
                      tail.columns(kv, 2 * kv));
    add_to_all<D>(ctx, x.rows(), 1, length);
    DecodeShape shape{static_cast<int>(heads_), static_cast<int>(kv_heads_), static_cast<int>(head_dim_),
                      static_cast<int>(head_dim_), 1 / std::sqrt(static_cast<double>(head_dim_))};
    attention_decode<D, T>(ctx, shape, cache.view<T>(kv, kv, 2 * kv), queries.mat<T>(), out.mat<T>());
  });
  return out_(pass, Var(out));
}

}  // namespace tactus
