// Attention backward on plain FMA, the counterpart of attention_mma_backward.cu: one kernel owns B queries and gives
// dq, the other owns B gathered columns and walks over the heads of its kv head and their queries in order. The
// equations are there.
#include <algorithm>

#include "kernels/attention/attention_simt.cuh"

namespace tactus::attention_cuda {
namespace {

/// Score gradients (without the factor `scale`) of a B x B tile, rows = queries, into `ds`; with WEIGHTS the weights
/// that dropout keeps into `weights`. `visible` is 0 for rows beyond the sequence.
template <int B, bool WEIGHTS, int R = B / 16>
__device__ inline void score_gradients(const float (&scores)[R][R], const float (&dp)[R][R],
                                       const AttentionShape& shape, float scale, const float (&lse2)[R],
                                       const float (&delta)[R], const int (&visible)[R], int c0, const uint8_t* keep,
                                       float* ds, float* weights) {
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  const bool dropout = shape.dropout.active();
  const float kept_scale = dropout_scale(shape);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int c = 0; c < R; ++c) {
      const int row = ty + 16 * r, col = tx + 16 * c, at = row * SimtLayout<B>::pitch_score + col;
      const bool seen = c0 + col < visible[r], kept = !dropout || simt_kept<B>(keep, row, col);
      const float p = seen ? exp2f(scores[r][c] * scale - lse2[r]) : 0.0f;
      ds[at] = seen ? p * ((kept ? dp[r][c] * kept_scale : 0.0f) - delta[r]) : 0.0f;
      if constexpr (WEIGHTS) weights[at] = kept ? p : 0.0f;
    }
}

/// lse in base-2 units, delta and the visible columns of the queries t0 + ty + 16 r.
template <class T, int R>
__device__ inline void load_rows(float (&lse2)[R], float (&delta)[R], int (&visible)[R], const Args<T>& a,
                                 const BackwardArgs<T>& b, const Sequence& s, const Columns& columns, int t0,
                                 int head) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int t = t0 + static_cast<int>(threadIdx.x) / 16 + 16 * r;
    const int64_t at = (s.own_begin + static_cast<int64_t>(t)) * a.shape.heads + head;
    const bool there = t < s.own;
    lse2[r] = there ? b.lse[at] * kLog2E : 0.0f;
    delta[r] = there ? b.delta[at] : 0.0f;
    visible[r] = there ? columns.visible(t) : 0;
  }
}

template <int R, int V>
__device__ inline void clear(float (&x)[R][V]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int v = 0; v < V; ++v) x[r][v] = 0;
}

template <class T, int G, int B>
__global__ void __launch_bounds__(kSimtThreads)
    query_gradient_kernel(const __grid_constant__ Args<T> a, const __grid_constant__ BackwardArgs<T> b, int tiles) {
  constexpr int R = B / 16, V = G / 16;
  extern __shared__ __align__(16) unsigned char shared_memory[];
  const SimtLayout<B> layout(a.shape);
  float* qs = reinterpret_cast<float*>(shared_memory);
  float* dos = qs + layout.qk();
  float* ks = dos + layout.v();
  float* vs = ks + layout.qk();
  float* ds = vs + layout.v();
  uint8_t* keep = reinterpret_cast<uint8_t*>(ds + layout.score());

  const BlockPlace place = block_place(tiles, a.shape.heads);
  const Sequence s = sequence_at(a.layout, place.sequence);
  const Columns columns(a.shape, s);
  const int t0 = (tiles - 1 - place.tile) * B, head = place.head, ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  if (t0 >= s.own) return;
  const int kv_head = head / (a.shape.heads / a.shape.kv_heads), d_key = a.shape.d_key,
            width = d_key + a.shape.d_shared;
  const int end = columns.visible(min(t0 + B, s.own) - 1);
  float lse2[R], delta[R], dq[R][V];
  int visible[R];
  load_rows(lse2, delta, visible, a, b, s, columns, t0, head);
  clear(dq);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int t = t0 + ty + 16 * r;
    if (t >= s.own || !columns.has_own(t)) continue;
    const int64_t row = s.own_begin + static_cast<int64_t>(t);
    const float own = b.own_score_grad[row * a.shape.heads + head];
    const T* k = a.own.k.row(row) + static_cast<int64_t>(kv_head) * d_key;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int x = tx + 16 * v;
      if (x < width) dq[r][v] = own * static_cast<float>(x < d_key ? k[x] : a.own.shared.row(row)[x - d_key]);
    }
  }
  simt_load_own<B>(qs, layout.pitch_qk, a.q, s, t0, static_cast<int64_t>(head) * width, width);
  simt_load_own<B>(dos, layout.pitch_v, b.dout, s, t0, static_cast<int64_t>(head) * a.shape.d_value, a.shape.d_value);

  for (int c0 = 0; c0 < end; c0 += B) {
    if (c0 > 0) __syncthreads();  // the tile before is used up
    simt_load_columns<B>(ks, vs, layout, a, s, columns, kv_head, c0, end);
    simt_keep_bits<B>(keep, a.shape.dropout, s.utterance, t0, head, c0);
    __syncthreads();
    float scores[R][R], dp[R][R];
    simt_dots<R>(scores, qs, ks, layout.pitch_qk, width);
    simt_dots<R>(dp, dos, vs, layout.pitch_v, a.shape.d_value);
    // A row of ds is written and read by the same half warp.
    score_gradients<B, false>(scores, dp, a.shape, a.scale_log2, lse2, delta, visible, c0, keep, ds, nullptr);
    __syncwarp();
    simt_accumulate<B, R, V>(dq, ds, ks, layout.pitch_qk);
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int t = t0 + ty + 16 * r;
    if (t >= s.own) continue;
    const float scale = static_cast<float>(a.shape.scale);
    T* to = b.dq.row(s.own_begin + t) + static_cast<int64_t>(head) * width;
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (tx + 16 * v < width) to[tx + 16 * v] = static_cast<T>(dq[r][v] * scale);
  }
}

template <class T, int R, int V>
__device__ inline void write_columns(const float (&dk)[R][V], const float (&dv)[R][V], const Args<T>& a,
                                     const BackwardArgs<T>& b, const Sequence& s, const Columns& columns, int c0,
                                     int kv_head) {
  const int d_key = a.shape.d_key, d_shared = a.shape.d_shared, d_value = a.shape.d_value;
  const float scale = static_cast<float>(a.shape.scale), kept_scale = dropout_scale(a.shape);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int c = c0 + static_cast<int>(threadIdx.x) / 16 + 16 * r;
    if (c >= columns.count()) continue;
    const int j = columns.key_row(c);
    const int64_t row = row_in_source(s, j);
    const KeyRows<T>& to = source_of(b.dprompt, b.down, s, j);
    T* to_k = to.k.row(row) + static_cast<int64_t>(kv_head) * d_key;
    T* to_v = to.v.row(row) + static_cast<int64_t>(kv_head) * d_value;
    float* to_shared = b.dshared + ((j < s.prompt ? row : b.prompt_rows + row) * a.shape.kv_heads + kv_head) * d_shared;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int x = static_cast<int>(threadIdx.x) % 16 + 16 * v;
      if (x < d_key)
        to_k[x] = static_cast<T>(dk[r][v] * scale);
      else if (x < d_key + d_shared)
        to_shared[x - d_key] = dk[r][v] * scale;
      if (x < d_value) to_v[x] = static_cast<T>(dv[r][v] * kept_scale);
    }
  }
}

template <class T, int G, int B>
__global__ void __launch_bounds__(kSimtThreads)
    key_gradient_kernel(const __grid_constant__ Args<T> a, const __grid_constant__ BackwardArgs<T> b, int tiles) {
  constexpr int R = B / 16, V = G / 16;
  extern __shared__ __align__(16) unsigned char shared_memory[];
  const SimtLayout<B> layout(a.shape);
  float* ks = reinterpret_cast<float*>(shared_memory);
  float* vs = ks + layout.qk();
  float* qs = vs + layout.v();
  float* dos = qs + layout.qk();
  float* ds = dos + layout.v();
  float* weights = ds + layout.score();
  uint8_t* keep = reinterpret_cast<uint8_t*>(weights + layout.score());

  const BlockPlace place = block_place(tiles, a.shape.kv_heads);
  const Sequence s = sequence_at(a.layout, place.sequence);
  const Columns columns(a.shape, s);
  const int c0 = place.tile * B, kv_head = place.head, count = columns.count();
  if (c0 >= count) return;
  const int group = a.shape.heads / a.shape.kv_heads, width = a.shape.d_key + a.shape.d_shared,
            d_value = a.shape.d_value;
  float dk[R][V], dv[R][V];
  clear(dk);
  clear(dv);
  simt_load_columns<B>(ks, vs, layout, a, s, columns, kv_head, c0, count);
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head)
    for (int t0 = columns.first_query(c0) / B * B; t0 < s.own; t0 += B) {
      __syncthreads();  // the tile before is used up
      simt_load_own<B>(qs, layout.pitch_qk, a.q, s, t0, static_cast<int64_t>(head) * width, width);
      simt_load_own<B>(dos, layout.pitch_v, b.dout, s, t0, static_cast<int64_t>(head) * d_value, d_value);
      simt_keep_bits<B>(keep, a.shape.dropout, s.utterance, t0, head, c0);
      float lse2[R], delta[R];
      int visible[R];
      load_rows(lse2, delta, visible, a, b, s, columns, t0, head);
      __syncthreads();
      float scores[R][R], dp[R][R];
      simt_dots<R>(scores, qs, ks, layout.pitch_qk, width);
      simt_dots<R>(dp, dos, vs, layout.pitch_v, d_value);
      score_gradients<B, true>(scores, dp, a.shape, a.scale_log2, lse2, delta, visible, c0, keep, ds, weights);
      __syncthreads();
      simt_accumulate_transposed<B, R, V>(dv, weights, dos, layout.pitch_v);
      simt_accumulate_transposed<B, R, V>(dk, ds, qs, layout.pitch_qk);
    }
  write_columns(dk, dv, a, b, s, columns, c0, kv_head);
}

template <class T, int G, int B>
void launch_backward(cudaStream_t stream, const Args<T>& args, const BackwardArgs<T>& grads) {
  const SimtLayout<B> layout(args.shape);
  const int64_t shared_bytes = 4 * (2 * layout.qk() + 2 * layout.v() + layout.score()) + layout.keep_bytes;
  const int64_t row_tiles = ceil_div(args.layout.own.longest, B),
                col_tiles = ceil_div(most_columns(args.shape, args.layout), B);
  launch("attention_backward (keys)", key_gradient_kernel<T, G, B>,
         col_tiles * args.shape.kv_heads * args.layout.own.count, kSimtThreads, shared_bytes + 4 * layout.score(),
         stream, args, grads, static_cast<int>(col_tiles));
  launch("attention_backward (queries)", query_gradient_kernel<T, G, B>,
         row_tiles * args.shape.heads * args.layout.own.count, kSimtThreads, shared_bytes, stream, args, grads,
         static_cast<int>(row_tiles));
}

}  // namespace

template <class T>
void simt_backward(cudaStream_t stream, const Args<T>& args, const BackwardArgs<T>& grads) {
  const int widest = std::max(args.shape.d_key + args.shape.d_shared, args.shape.d_value);
  if constexpr (std::is_same_v<T, float>) {
    if (widest <= 64) return launch_backward<T, 64, 64>(stream, args, grads);
    if (widest <= 128) return launch_backward<T, 128, 32>(stream, args, grads);
  }
  launch_backward<T, kSimtWidth, 32>(stream, args, grads);
}

template void simt_backward<float>(cudaStream_t, const Args<float>&, const BackwardArgs<float>&);
template void simt_backward<bf16>(cudaStream_t, const Args<bf16>&, const BackwardArgs<bf16>&);

}  // namespace tactus::attention_cuda
