// Attention forward on plain FMA: f32 without TF32, and bf16 heads too wide for the tensor core kernels. Same scheme as
// attention_mma_forward.cu: B queries of one head and sequence for each block, running softmax over tiles of B gathered
// columns.
#include <algorithm>

#include "kernels/attention/attention_simt.cuh"

namespace tactus::attention_cuda {
namespace {

/// Starts softmax and output rows from the queries' own columns, read from global memory by the 16 lanes of a row.
template <class T, int R, int V>
__device__ inline void begin_with_own(float (&max)[R], float (&sum)[R], float (&o)[R][V], const Args<T>& a,
                                      const Sequence& s, const Columns& columns, int t0, int head, const float* qs,
                                      int pitch) {
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16, kv_head = head / (a.shape.heads / a.shape.kv_heads);
  const int d_key = a.shape.d_key, d_shared = a.shape.d_shared, d_value = a.shape.d_value;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int t = t0 + ty + 16 * r;
    const bool has_own = t < s.own && columns.has_own(t);
    const int64_t row = s.own_begin + static_cast<int64_t>(t);
    const float* q = qs + (ty + 16 * r) * pitch;
    float dot = 0;
    if (has_own) {
      const T* k = a.own.k.row(row) + static_cast<int64_t>(kv_head) * d_key;
      for (int x = tx; x < d_key; x += 16) dot += q[x] * static_cast<float>(k[x]);
      if (d_shared > 0) {
        const T* shared = a.own.shared.row(row);
        for (int x = tx; x < d_shared; x += 16) dot += q[d_key + x] * static_cast<float>(shared[x]);
      }
    }
    dot = lanes_sum<16>(dot);
    if (!has_own) continue;
    max[r] = dot * a.scale_log2;
    sum[r] = tx == 0 ? 1.0f : 0.0f;
    if (!keeps_own_column(a.shape, s, t, head, columns.visible(t))) continue;
    const T* v = a.own.v.row(row) + static_cast<int64_t>(kv_head) * d_value;
#pragma unroll
    for (int x = 0; x < V; ++x)
      if (tx + 16 * x < d_value) o[r][x] = static_cast<float>(v[tx + 16 * x]);
  }
}

/// One tile of scores to weights in shared memory, and the older sums to the new maxima. A row's weights are written
/// and read by the same half warp.
template <int B, int V, int R = B / 16>
__device__ inline void softmax_tile(float (&scores)[R][R], float (&max)[R], float (&sum)[R], float (&o)[R][V],
                                    const int (&visible)[R], float scale, int c0, const uint8_t* keep, bool dropout,
                                    float* weights) {
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  __syncwarp();  // the weights of the tile before are used up
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float m = max[r];
#pragma unroll
    for (int c = 0; c < R; ++c) {
      scores[r][c] = c0 + tx + 16 * c < visible[r] ? scores[r][c] * scale : -INFINITY;
      m = fmaxf(m, scores[r][c]);
    }
    m = lanes_max<16>(m);
    const float base = finite_max(m), correction = exp2f(max[r] - base);
    max[r] = m;
    sum[r] *= correction;
#pragma unroll
    for (int c = 0; c < R; ++c) {
      const float p = exp2f(scores[r][c] - base);
      sum[r] += p;
      weights[(ty + 16 * r) * SimtLayout<B>::pitch_score + tx + 16 * c] =
          !dropout || simt_kept<B>(keep, ty + 16 * r, tx + 16 * c) ? p : 0.0f;
    }
#pragma unroll
    for (int x = 0; x < V; ++x) o[r][x] *= correction;
  }
  __syncwarp();
}

/// G: head widths at most. B: tile side.
template <class T, int G, int B>
__global__ void __launch_bounds__(kSimtThreads)
    forward_kernel(const __grid_constant__ Args<T> a, const __grid_constant__ Mat<T> out, float* lse, int tiles) {
  constexpr int R = B / 16, V = G / 16;
  extern __shared__ __align__(16) unsigned char shared_memory[];
  const SimtLayout<B> layout(a.shape);
  float* qs = reinterpret_cast<float*>(shared_memory);
  float* ks = qs + layout.qk();
  float* vs = ks + layout.qk();
  float* weights = vs + layout.v();
  uint8_t* keep = reinterpret_cast<uint8_t*>(weights + layout.score());

  const BlockPlace place = block_place(tiles, a.shape.heads);
  const Sequence s = sequence_at(a.layout, place.sequence);
  const Columns columns(a.shape, s);
  const int t0 = (tiles - 1 - place.tile) * B, head = place.head, ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  if (t0 >= s.own) return;
  const int kv_head = head / (a.shape.heads / a.shape.kv_heads), width = a.shape.d_key + a.shape.d_shared;
  const int end = columns.visible(min(t0 + B, s.own) - 1);

  float max[R], sum[R], o[R][V];
  int visible[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int t = t0 + ty + 16 * r;
    visible[r] = t < s.own ? columns.visible(t) : 0;
    max[r] = -INFINITY, sum[r] = 0;
#pragma unroll
    for (int x = 0; x < V; ++x) o[r][x] = 0;
  }
  simt_load_own<B>(qs, layout.pitch_qk, a.q, s, t0, static_cast<int64_t>(head) * width, width);
  __syncthreads();
  if (a.shape.causal && a.shape.stride > 1) begin_with_own(max, sum, o, a, s, columns, t0, head, qs, layout.pitch_qk);

  for (int c0 = 0; c0 < end; c0 += B) {
    if (c0 > 0) __syncthreads();  // the tile before is used up
    simt_load_columns<B>(ks, vs, layout, a, s, columns, kv_head, c0, end);
    simt_keep_bits<B>(keep, a.shape.dropout, s.utterance, t0, head, c0);
    __syncthreads();
    float scores[R][R];
    simt_dots<R>(scores, qs, ks, layout.pitch_qk, width);
    softmax_tile<B, V>(scores, max, sum, o, visible, a.scale_log2, c0, keep, a.shape.dropout.active(), weights);
    simt_accumulate<B, R, V>(o, weights, vs, layout.pitch_v);
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int t = t0 + ty + 16 * r;
    const float total = lanes_sum<16>(sum[r]);
    if (t >= s.own) continue;
    const bool sees_none = visible[r] == 0 && !columns.has_own(t);
    const float factor = sees_none ? 0.0f : dropout_scale(a.shape) / total;
    const int64_t row = s.own_begin + static_cast<int64_t>(t);
    T* to = out.row(row) + static_cast<int64_t>(head) * a.shape.d_value;
#pragma unroll
    for (int x = 0; x < V; ++x)
      if (tx + 16 * x < a.shape.d_value) to[tx + 16 * x] = static_cast<T>(o[r][x] * factor);
    if (tx == 0) lse[row * a.shape.heads + head] = sees_none ? -INFINITY : max[r] * kLn2 + logf(total);
  }
}

template <class T, int G, int B>
void launch_forward(cudaStream_t stream, const Args<T>& args, const Mat<T>& out, float* lse) {
  const int64_t tiles = ceil_div(args.layout.own.longest, B);
  const SimtLayout<B> layout(args.shape);
  const int64_t shared_bytes = 4 * (2 * layout.qk() + layout.v() + layout.score()) + layout.keep_bytes;
  launch("attention_forward", forward_kernel<T, G, B>, tiles * args.shape.heads * args.layout.own.count, kSimtThreads,
         shared_bytes, stream, args, out, lse, static_cast<int>(tiles));
}

}  // namespace

template <class T>
void simt_forward(cudaStream_t stream, const Args<T>& args, Mat<T> out, float* lse) {
  const int widest = std::max(args.shape.d_key + args.shape.d_shared, args.shape.d_value);
  if constexpr (std::is_same_v<T, float>) {
    if (widest <= 64) return launch_forward<T, 64, 64>(stream, args, out, lse);
    if (widest <= 128) return launch_forward<T, 128, 64>(stream, args, out, lse);
  }
  launch_forward<T, kSimtWidth, 32>(stream, args, out, lse);
}

template void simt_forward<float>(cudaStream_t, const Args<float>&, Mat<float>, float*);
template void simt_forward<bf16>(cudaStream_t, const Args<bf16>&, Mat<bf16>, float*);

}  // namespace tactus::attention_cuda
