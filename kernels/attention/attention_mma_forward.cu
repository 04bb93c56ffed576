// Attention forward on tensor cores: 64 queries of one head and sequence for each block, 16 for each warp, running
// softmax over tiles of 64 gathered columns (Dao, "FlashAttention-2", 2023, algorithm 1). The values of a tile arrive
// while its scores are computed, the keys of the next one while the values are used.
#include "kernels/attention/attention_mma.cuh"

namespace tactus::attention_cuda {
namespace {

constexpr int kCols = 64;
constexpr int kColTiles = kCols / 8;

/// Running softmax of the two rows (g, g + 8) of a lane. Maxima are in base-2 units; `sum` is this lane's part.
struct RunningSoftmax {
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

  /// Turns scaled and masked scores into weights relative to the new maxima; returns by what to multiply older results.
  __device__ float2 weights(Strip<kColTiles>& s) {
    float correction[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float m = max[h];
#pragma unroll
      for (int n = 0; n < kColTiles; ++n) m = fmaxf(m, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
      m = lanes_max<4>(m);
      const float base = finite_max(m);
      correction[h] = exp2f(max[h] - base);
      max[h] = m;
      float tile_sum = 0;
#pragma unroll
      for (int n = 0; n < kColTiles; ++n) {
        s[n][2 * h] = exp2f(s[n][2 * h] - base);
        s[n][2 * h + 1] = exp2f(s[n][2 * h + 1] - base);
        tile_sum += s[n][2 * h] + s[n][2 * h + 1];
      }
      sum[h] = sum[h] * correction[h] + tile_sum;
    }
    return {correction[0], correction[1]};
  }
};

/// Scores to base-2 units, with -inf for columns that a row does not see.
__device__ inline void scale_and_mask(Strip<kColTiles>& s, float scale, int c0, const int (&visible)[2], bool mask) {
  const int q = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < kColTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[n][i] *= scale;
      if (mask && c0 + 8 * n + 2 * q + i % 2 >= visible[i / 2]) s[n][i] = -INFINITY;
    }
}

/// Starts the running softmax from the rows' own columns, whose keys and values lie in the tiles `k` and `v`, row by
/// row.
template <int DQ, int DV>
__device__ inline void begin_with_own(RunningSoftmax& softmax, Strip<DV / 8>& o, const Args<bf16>& a, const Sequence& s,
                                      const Columns& columns, int t0, int head, const bf16* qs, const bf16* k,
                                      const bf16* v) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = threadIdx.x / 32 * 16 + g + 8 * h, t = t0 + r;
    float dot = 0;
#pragma unroll
    for (int x = 0; x < DQ; x += 8) {
      const float2 x0 = unpack_bf16(*reinterpret_cast<const uint32_t*>(qs + r * pitch<DQ> + x + 2 * q));
      const float2 x1 = unpack_bf16(*reinterpret_cast<const uint32_t*>(k + r * pitch<DQ> + x + 2 * q));
      dot += x0.x * x1.x + x0.y * x1.y;
    }
    dot = lanes_sum<4>(dot);
    if (t >= s.own || !columns.has_own(t)) continue;
    softmax.max[h] = dot * a.scale_log2;
    softmax.sum[h] = q == 0 ? 1.0f : 0.0f;
    if (!keeps_own_column(a.shape, s, t, head, columns.visible(t))) continue;
#pragma unroll
    for (int n = 0; n < DV / 8; ++n) {
      const float2 x = unpack_bf16(*reinterpret_cast<const uint32_t*>(v + r * pitch<DV> + 8 * n + 2 * q));
      o[n][2 * h] = x.x, o[n][2 * h + 1] = x.y;
    }
  }
}

/// Rounds the weights that dropout keeps to bf16, as the A operand of the product with the values.
__device__ inline void pack_kept(uint32_t (&p)[kColTiles][2], const Strip<kColTiles>& s, const DropoutKey& dropout,
                                 const QueryKeepBits& keep) {
#pragma unroll
  for (int n = 0; n < kColTiles; ++n) {
    uint32_t bits = 0xffffffffu;
    if (dropout.active()) bits = keep.of_tile(n);
    p[n][0] = pack_bf16(bits & 1 ? s[n][0] : 0.0f, bits & 2 ? s[n][1] : 0.0f);
    p[n][1] = pack_bf16(bits & 0x10000 ? s[n][2] : 0.0f, bits & 0x20000 ? s[n][3] : 0.0f);
  }
}

template <int DV>
__device__ inline void write_rows(const RunningSoftmax& softmax, const Strip<DV / 8>& o, const Args<bf16>& a,
                                  const Sequence& s, const Columns& columns, int t0, int head, const Mat<bf16>& out,
                                  float* lse) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int t = t0 + threadIdx.x / 32 * 16 + g + 8 * h;
    const float sum = lanes_sum<4>(softmax.sum[h]);
    if (t >= s.own) continue;
    const bool sees_none = columns.visible(t) == 0 && !columns.has_own(t);
    const float factor = sees_none ? 0.0f : dropout_scale(a.shape) / sum;
    const int64_t row = s.own_begin + t;
    bf16* to = out.row(row) + static_cast<int64_t>(head) * a.shape.d_value;
#pragma unroll
    for (int n = 0; n < DV / 8; ++n)
      store_pair(to, 8 * n + 2 * q, a.shape.d_value, o[n][2 * h] * factor, o[n][2 * h + 1] * factor, a.vector);
    if (q == 0) lse[row * a.shape.heads + head] = sees_none ? -INFINITY : softmax.max[h] * kLn2 + logf(sum);
  }
}

template <int DQ, int DV>
__global__ void __launch_bounds__(kMmaThreads)
    forward_kernel(const __grid_constant__ Args<bf16> a, const __grid_constant__ Mat<bf16> out, float* lse, int tiles) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  bf16* qs = reinterpret_cast<bf16*>(shared_memory);
  bf16* ks = qs + kMmaRows * pitch<DQ>;
  bf16* vs = ks + kCols * pitch<DQ>;

  const BlockPlace place = block_place(tiles, a.shape.heads);
  const Sequence s = sequence_at(a.layout, place.sequence);
  const Columns columns(a.shape, s);
  // The last tile has the most columns: it starts first.
  const int t0 = (tiles - 1 - place.tile) * kMmaRows, head = place.head;
  if (t0 >= s.own) return;
  const int kv_head = head / (a.shape.heads / a.shape.kv_heads), width = a.shape.d_key + a.shape.d_shared;
  const int end = columns.visible(min(t0 + kMmaRows, s.own) - 1), fewest = columns.visible(t0);
  const int warp_row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4;
  int visible[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int t = t0 + warp_row + g + 8 * h;
    visible[h] = t < s.own ? columns.visible(t) : 0;
  }

  RunningSoftmax softmax;
  Strip<DV / 8> o;
  clear<DV / 8>(o);
  load_own_rows<DQ, kMmaRows>(qs, a.q, s, t0, static_cast<int64_t>(head) * width, width, a.vector);
  if (a.shape.causal && a.shape.stride > 1) {
    load_keys<DQ, kMmaRows>(ks, a, s, kv_head, OwnTile{columns, t0, s.own});
    load_values<DV, kMmaRows>(vs, a, s, kv_head, OwnTile{columns, t0, s.own});
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    begin_with_own<DQ, DV>(softmax, o, a, s, columns, t0, head, qs, ks, vs);
    __syncthreads();
  }
  load_keys<DQ, kCols>(ks, a, s, kv_head, ColumnTile{columns, 0, end});
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();

  for (int c0 = 0; c0 < end; c0 += kCols) {
    load_values<DV, kCols>(vs, a, s, kv_head, ColumnTile{columns, c0, end});
    copy_async_commit();
    Strip<kColTiles> scores;
    multiply_rows<DQ, kColTiles>(scores, qs + warp_row * pitch<DQ>, ks);
    copy_async_wait<0>();
    __syncthreads();  // the values are there, and nobody reads these keys any more
    if (c0 + kCols < end) load_keys<DQ, kCols>(ks, a, s, kv_head, ColumnTile{columns, c0 + kCols, end});
    copy_async_commit();

    scale_and_mask(scores, a.scale_log2, c0, visible, c0 + kCols > fewest);
    const float2 correction = softmax.weights(scores);
#pragma unroll
    for (int n = 0; n < DV / 8; ++n) {
      o[n][0] *= correction.x, o[n][1] *= correction.x;
      o[n][2] *= correction.y, o[n][3] *= correction.y;
    }
    uint32_t p[kColTiles][2];
    pack_kept(p, scores, a.shape.dropout, QueryKeepBits(a.shape.dropout, s.utterance, t0 + warp_row, head, c0));
    accumulate_rows<DV, kColTiles>(o, p, vs);
    copy_async_wait<0>();
    __syncthreads();  // the next keys are there, and nobody reads these values any more
  }
  write_rows<DV>(softmax, o, a, s, columns, t0, head, out, lse);
}

template <int DQ, int DV>
void launch_forward(cudaStream_t stream, const Args<bf16>& args, const Mat<bf16>& out, float* lse) {
  const int64_t tiles = ceil_div(args.layout.own.longest, kMmaRows);
  const int64_t shared_bytes = 2 * ((kMmaRows + kCols) * pitch<DQ> + kCols * pitch<DV>);
  launch("attention_forward (bf16)", forward_kernel<DQ, DV>, tiles * args.shape.heads * args.layout.own.count,
         kMmaThreads, shared_bytes, stream, args, out, lse, static_cast<int>(tiles));
}

}  // namespace

bool mma_supports(int width_qk, int d_value) { return width_qk <= 192 && d_value <= 128; }

void mma_forward(cudaStream_t stream, const Args<bf16>& args, Mat<bf16> out, float* lse) {
  const int width = args.shape.d_key + args.shape.d_shared, d_value = args.shape.d_value;
  if (width <= 32 && d_value <= 32) return launch_forward<32, 32>(stream, args, out, lse);
  if (width <= 64 && d_value <= 64) return launch_forward<64, 64>(stream, args, out, lse);
  if (width <= 96 && d_value <= 64) return launch_forward<96, 64>(stream, args, out, lse);
  if (width <= 128) return launch_forward<128, 128>(stream, args, out, lse);
  launch_forward<192, 128>(stream, args, out, lse);
}

}  // namespace tactus::attention_cuda
