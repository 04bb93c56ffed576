// Attention backward on tensor cores, scores recomputed from the saved log-sum-exp (Dao, "FlashAttention-2", 2023,
// algorithm 2), in two kernels without atomics: one owns 64 queries and gives dq, the other owns 64 gathered columns,
// walks over the heads of its kv head and their queries in order, and gives dk, dv and this kv head's part of the
// shared key's gradient. With weights P, kept by dropout as K (0 or its scale): dV = (K P)^T dO, dS = P (K (dO V^T) -
// delta), delta = rowsum(dO O), dQ = scale dS K, dK = scale dS^T Q.
#include "kernels/attention/attention_mma.cuh"

namespace tactus::attention_cuda {
namespace {

/// Rows of the side that streams by: fewer where the sums of wide heads already fill the registers.
template <int DQ>
constexpr int stream_rows = DQ <= 96 ? 64 : 32;

// ------------------------------------------------------------------------------------------------------------ dq

/// What a lane knows about its two query rows, g and g + 8.
struct QueryRows {
  float lse2[2], delta[2];  // lse2: log-sum-exp in base-2 units
  int visible[2];
  __device__ QueryRows(const Args<bf16>& a, const BackwardArgs<bf16>& b, const Sequence& s, const Columns& columns,
                       int t, int head) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = t + 8 * h;
      const int64_t at = (s.own_begin + static_cast<int64_t>(row)) * a.shape.heads + head;
      const bool there = row < s.own;
      lse2[h] = there ? b.lse[at] * kLog2E : 0.0f;
      delta[h] = there ? b.delta[at] : 0.0f;
      visible[h] = there ? columns.visible(row) : 0;
    }
  }
};

/// Scores to their gradients (without the factor `scale`), packed for the product with the keys. All lanes take part.
template <int N>
__device__ inline void query_score_gradients(uint32_t (&ds)[N][2], const Strip<N>& scores, const Strip<N>& dp,
                                             const Args<bf16>& a, const QueryRows& rows, const QueryKeepBits& keep,
                                             int c0, bool mask) {
  const int q = threadIdx.x % 4;
  const float kept = dropout_scale(a.shape);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    uint32_t bits = 0xffffffffu;
    if (a.shape.dropout.active()) bits = keep.of_tile(n);
    float d[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = i / 2;
      const float p = exp2f(scores[n][i] * a.scale_log2 - rows.lse2[h]);
      const float upstream = bits >> (16 * h + i % 2) & 1 ? dp[n][i] * kept : 0.0f;
      d[i] = mask && c0 + 8 * n + 2 * q + i % 2 >= rows.visible[h] ? 0.0f : p * (upstream - rows.delta[h]);
    }
    ds[n][0] = pack_bf16(d[0], d[1]);
    ds[n][1] = pack_bf16(d[2], d[3]);
  }
}

/// dq starts from the own columns, whose keys lie in the tile `k`, row by row.
template <int DQ>
__device__ inline void begin_with_own(Strip<DQ / 8>& dq, const Args<bf16>& a, const BackwardArgs<bf16>& b,
                                      const Sequence& s, const Columns& columns, int t0, int head, const bf16* k) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = threadIdx.x / 32 * 16 + g + 8 * h, t = t0 + r;
    if (t >= s.own || !columns.has_own(t)) continue;
    const float ds = b.own_score_grad[(s.own_begin + static_cast<int64_t>(t)) * a.shape.heads + head];
#pragma unroll
    for (int n = 0; n < DQ / 8; ++n) {
      const float2 x = unpack_bf16(*reinterpret_cast<const uint32_t*>(k + r * pitch<DQ> + 8 * n + 2 * q));
      dq[n][2 * h] = ds * x.x, dq[n][2 * h + 1] = ds * x.y;
    }
  }
}

template <int DQ, int DV>
__global__ void __launch_bounds__(kMmaThreads)
    query_gradient_kernel(const __grid_constant__ Args<bf16> a, const __grid_constant__ BackwardArgs<bf16> b,
                          int tiles) {
  constexpr int kCols = stream_rows<DQ>, kColTiles = kCols / 8, kStage = kCols * (pitch<DQ> + pitch<DV>);
  extern __shared__ __align__(16) unsigned char shared_memory[];
  bf16* qs = reinterpret_cast<bf16*>(shared_memory);
  bf16* dos = qs + kMmaRows * pitch<DQ>;
  bf16* stages = dos + kMmaRows * pitch<DV>;  // two of [keys; values]

  const BlockPlace place = block_place(tiles, a.shape.heads);
  const Sequence s = sequence_at(a.layout, place.sequence);
  const Columns columns(a.shape, s);
  const int t0 = (tiles - 1 - place.tile) * kMmaRows, head = place.head;
  if (t0 >= s.own) return;
  const int kv_head = head / (a.shape.heads / a.shape.kv_heads), width = a.shape.d_key + a.shape.d_shared;
  const int end = columns.visible(min(t0 + kMmaRows, s.own) - 1), fewest = columns.visible(t0);
  const int warp_row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  const QueryRows rows(a, b, s, columns, t0 + warp_row + g, head);
  // A tile with rows beyond the sequence needs no mask for them: their q and dO are zero, and nothing of them is
  // written.
  const auto prefetch = [&](int c0) {
    bf16* ks = stages + (c0 / kCols & 1) * kStage;
    load_keys<DQ, kCols>(ks, a, s, kv_head, ColumnTile{columns, c0, end});
    load_values<DV, kCols>(ks + kCols * pitch<DQ>, a, s, kv_head, ColumnTile{columns, c0, end});
  };

  Strip<DQ / 8> dq;
  clear<DQ / 8>(dq);
  load_own_rows<DQ, kMmaRows>(qs, a.q, s, t0, static_cast<int64_t>(head) * width, width, a.vector);
  load_own_rows<DV, kMmaRows>(dos, b.dout, s, t0, static_cast<int64_t>(head) * a.shape.d_value, a.shape.d_value,
                              a.vector);
  if (a.shape.causal && a.shape.stride > 1) {
    // The stages are free yet and together at least kMmaRows rows of keys long.
    static_assert(2 * kStage >= kMmaRows * pitch<DQ>);
    load_keys<DQ, kMmaRows>(stages, a, s, kv_head, OwnTile{columns, t0, s.own});
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    begin_with_own<DQ>(dq, a, b, s, columns, t0, head, stages);
    __syncthreads();
  }
  prefetch(0);
  copy_async_commit();
  for (int c0 = 0; c0 < end; c0 += kCols) {
    if (c0 + kCols < end) prefetch(c0 + kCols);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    const bf16* ks = stages + (c0 / kCols & 1) * kStage;
    Strip<kColTiles> scores, dp;
    multiply_rows<DQ, kColTiles>(scores, qs + warp_row * pitch<DQ>, ks);
    multiply_rows<DV, kColTiles>(dp, dos + warp_row * pitch<DV>, ks + kCols * pitch<DQ>);
    uint32_t ds[kColTiles][2];
    query_score_gradients<kColTiles>(ds, scores, dp, a, rows,
                                     QueryKeepBits(a.shape.dropout, s.utterance, t0 + warp_row, head, c0), c0,
                                     c0 + kCols > fewest);
    accumulate_rows<DQ, kColTiles>(dq, ds, ks);
    __syncthreads();  // this stage is free for the tile after the next
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int t = t0 + warp_row + g + 8 * h;
    if (t >= s.own) continue;
    const float scale = static_cast<float>(a.shape.scale);
    bf16* to = b.dq.row(s.own_begin + t) + static_cast<int64_t>(head) * width;
#pragma unroll
    for (int n = 0; n < DQ / 8; ++n)
      store_pair(to, 8 * n + 2 * q, width, dq[n][2 * h] * scale, dq[n][2 * h + 1] * scale, a.vector);
  }
}

// ------------------------------------------------------------------------------------------------------ dk and dv

/// Scores of 16 columns (rows of the accumulators) and ROWS queries (their columns) to weights.
template <int ROWS>
__device__ inline void weights_of_columns(Strip<ROWS / 8>& s, float scale, const float* lse, const int (&first)[2],
                                          int t0, int own, bool mask) {
  const int q = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < ROWS / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int u = 8 * n + 2 * q + i % 2, t = t0 + u;
      const float p = exp2f(s[n][i] * scale - lse[u] * kLog2E);
      s[n][i] = mask && (t < first[i / 2] || t >= own) ? 0.0f : p;
    }
}

/// Keep bits of a warp's 16 columns from c0 and ROWS queries from t0: lane l holds those of queries l and l + 32, bits
/// 0 .. 15 for the 16 columns. The accumulator layout has rows = columns of the attention matrix.
template <int ROWS>
struct ColumnKeepBits {
  uint32_t words[ROWS / 32];
  __device__ ColumnKeepBits(const DropoutKey& d, uint32_t utterance, int t0, int head, int c0) {
#pragma unroll
    for (int w = 0; w < ROWS / 32; ++w) {
      words[w] = 0xffffffffu;
      if (!d.active()) continue;
      const uint32_t t = static_cast<uint32_t>(t0 + 32 * w) + threadIdx.x % 32, group = static_cast<uint32_t>(c0) / 8;
      words[w] = keep_bits(d, utterance, t, static_cast<uint32_t>(head), group) |
                 keep_bits(d, utterance, t, static_cast<uint32_t>(head), group + 1) << 8;
    }
  }
  /// Bit 2e + h for query 2q + e of accumulator tile n and column g + 8h. All lanes call it.
  __device__ uint32_t of_tile(int n) const {
    const int lane = threadIdx.x % 32, g = lane / 4;
    uint32_t bits = 0;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const uint32_t w = __shfl_sync(kFullWarp, words[n / 4], 8 * (n % 4) + 2 * (lane % 4) + e) >> g;
      bits |= ((w & 1) | (w >> 7 & 2)) << (2 * e);
    }
    return bits;
  }
};

/// One tile of queries: dv += (kept weights)^T dO and dk += dS^T q, both without their constant factors.
template <int DQ, int DV>
__device__ inline void add_query_tile(Strip<DQ / 8>& dk, Strip<DV / 8>& dv, const Args<bf16>& a, const Sequence& s,
                                      const bf16* ks, const bf16* vs, const bf16* qs, const bf16* dos, const float* lse,
                                      const float* delta, const int (&first)[2], int t0, int head, int warp_c0,
                                      bool mask) {
  constexpr int kRows = stream_rows<DQ>, kTiles = kRows / 8;
  const int q = threadIdx.x % 4;
  const ColumnKeepBits<kRows> keep(a.shape.dropout, s.utterance, t0, head, warp_c0);
  const float kept_scale = dropout_scale(a.shape);
  uint32_t packed[kTiles][2], kept[kTiles];
  Strip<kTiles> p;
  multiply_rows<DQ, kTiles>(p, ks, qs);
  weights_of_columns<kRows>(p, a.scale_log2, lse, first, t0, s.own, mask);
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    kept[n] = a.shape.dropout.active() ? keep.of_tile(n) : 0xfu;
    packed[n][0] = pack_bf16(kept[n] & 1 ? p[n][0] : 0.0f, kept[n] & 4 ? p[n][1] : 0.0f);
    packed[n][1] = pack_bf16(kept[n] & 2 ? p[n][2] : 0.0f, kept[n] & 8 ? p[n][3] : 0.0f);
  }
  accumulate_rows<DV, kTiles>(dv, packed, dos);
  Strip<kTiles> dp;
  multiply_rows<DV, kTiles>(dp, vs, dos);
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    float d[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int e = i % 2, h = i / 2;
      const float upstream = kept[n] >> (2 * e + h) & 1 ? dp[n][i] * kept_scale : 0.0f;
      d[i] = p[n][i] * (upstream - delta[8 * n + 2 * q + e]);
    }
    packed[n][0] = pack_bf16(d[0], d[1]);
    packed[n][1] = pack_bf16(d[2], d[3]);
  }
  accumulate_rows<DQ, kTiles>(dk, packed, qs);
}

template <int DQ, int DV>
__device__ inline void write_columns(const Strip<DQ / 8>& dk, const Strip<DV / 8>& dv, const Args<bf16>& a,
                                     const BackwardArgs<bf16>& b, const Sequence& s, const Columns& columns, int c,
                                     int kv_head) {
  const int q = threadIdx.x % 4, d_key = a.shape.d_key, d_shared = a.shape.d_shared, d_value = a.shape.d_value;
  const float scale = static_cast<float>(a.shape.scale), kept_scale = dropout_scale(a.shape);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (c + 8 * h >= columns.count()) continue;
    const int j = columns.key_row(c + 8 * h);
    const int64_t row = row_in_source(s, j);
    const KeyRows<bf16>& to = source_of(b.dprompt, b.down, s, j);
    bf16* to_k = to.k.row(row) + static_cast<int64_t>(kv_head) * d_key;
    bf16* to_v = to.v.row(row) + static_cast<int64_t>(kv_head) * d_value;
    float* to_shared =
        b.dshared + ((j < s.prompt ? row : b.prompt_rows + row) * a.shape.kv_heads + kv_head) * d_shared - d_key;
#pragma unroll
    for (int n = 0; n < DQ / 8; ++n) {
      const int x = 8 * n + 2 * q;
      const float v0 = dk[n][2 * h] * scale, v1 = dk[n][2 * h + 1] * scale;
      store_pair(to_k, x, d_key, v0, v1, a.vector);
      if (x >= d_key && x < d_key + d_shared) to_shared[x] = v0;
      if (x + 1 >= d_key && x + 1 < d_key + d_shared) to_shared[x + 1] = v1;
    }
#pragma unroll
    for (int n = 0; n < DV / 8; ++n)
      store_pair(to_v, 8 * n + 2 * q, d_value, dv[n][2 * h] * kept_scale, dv[n][2 * h + 1] * kept_scale, a.vector);
  }
}

template <int DQ, int DV>
__global__ void __launch_bounds__(kMmaThreads)
    key_gradient_kernel(const __grid_constant__ Args<bf16> a, const __grid_constant__ BackwardArgs<bf16> b, int tiles) {
  constexpr int kRows = stream_rows<DQ>, kStage = kRows * (pitch<DQ> + pitch<DV>);
  extern __shared__ __align__(16) unsigned char shared_memory[];
  bf16* ks = reinterpret_cast<bf16*>(shared_memory);
  bf16* vs = ks + kMmaRows * pitch<DQ>;
  bf16* stages = vs + kMmaRows * pitch<DV>;                           // two of [q; dO]
  float* statistics = reinterpret_cast<float*>(stages + 2 * kStage);  // two of [log-sum-exp; delta]

  const BlockPlace place = block_place(tiles, a.shape.kv_heads);
  const Sequence s = sequence_at(a.layout, place.sequence);
  const Columns columns(a.shape, s);
  const int c0 = place.tile * kMmaRows, kv_head = place.head, count = columns.count();
  if (c0 >= count) return;
  const int group = a.shape.heads / a.shape.kv_heads, width = a.shape.d_key + a.shape.d_shared,
            d_value = a.shape.d_value;
  const int warp_row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4;
  const int first[2] = {columns.first_query(c0 + warp_row + g), columns.first_query(c0 + warp_row + g + 8)};
  const int begin = columns.first_query(c0) / kRows * kRows;
  const int row_tiles = s.own > begin ? (s.own - begin + kRows - 1) / kRows : 0, steps = row_tiles * group;
  // From this query on all columns of the tile are seen. Columns beyond `count` have zero keys and are not written.
  const int all_seen = columns.first_query(min(c0 + kMmaRows, count) - 1);

  const auto prefetch = [&](int step) {
    const int head = kv_head * group + step / row_tiles, t0 = begin + step % row_tiles * kRows;
    bf16* qs = stages + (step & 1) * kStage;
    load_own_rows<DQ, kRows>(qs, a.q, s, t0, static_cast<int64_t>(head) * width, width, a.vector);
    load_own_rows<DV, kRows>(qs + kRows * pitch<DQ>, b.dout, s, t0, static_cast<int64_t>(head) * d_value, d_value,
                             a.vector);
    for (int r = threadIdx.x; r < kRows; r += kMmaThreads) {
      const int64_t at = (s.own_begin + static_cast<int64_t>(t0 + r)) * a.shape.heads + head;
      float* to = statistics + (step & 1) * 2 * kRows + r;
      to[0] = t0 + r < s.own ? b.lse[at] : 0.0f;
      to[kRows] = t0 + r < s.own ? b.delta[at] : 0.0f;
    }
  };

  Strip<DQ / 8> dk;
  Strip<DV / 8> dv;
  clear<DQ / 8>(dk);
  clear<DV / 8>(dv);
  if (steps > 0) {
    load_keys<DQ, kMmaRows>(ks, a, s, kv_head, ColumnTile{columns, c0, count});
    load_values<DV, kMmaRows>(vs, a, s, kv_head, ColumnTile{columns, c0, count});
    prefetch(0);
    copy_async_commit();
  }
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) prefetch(step + 1);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    const int t0 = begin + step % row_tiles * kRows;
    const bf16* qs = stages + (step & 1) * kStage;
    const float* lse = statistics + (step & 1) * 2 * kRows;
    add_query_tile<DQ, DV>(dk, dv, a, s, ks + warp_row * pitch<DQ>, vs + warp_row * pitch<DV>, qs,
                           qs + kRows * pitch<DQ>, lse, lse + kRows, first, t0, kv_head * group + step / row_tiles,
                           c0 + warp_row, t0 < all_seen || t0 + kRows > s.own);
    __syncthreads();  // this stage is free for the step after the next
  }
  write_columns<DQ, DV>(dk, dv, a, b, s, columns, c0 + warp_row + g, kv_head);
}

template <int DQ, int DV>
void launch_backward(cudaStream_t stream, const Args<bf16>& args, const BackwardArgs<bf16>& grads) {
  constexpr int64_t kPair = pitch<DQ> + pitch<DV>;
  const int64_t shared_bytes = 2 * (kMmaRows + 2 * stream_rows<DQ>)*kPair, statistics_bytes = 4 * 4 * stream_rows<DQ>;
  const int64_t row_tiles = ceil_div(args.layout.own.longest, kMmaRows);
  const int64_t col_tiles = ceil_div(most_columns(args.shape, args.layout), kMmaRows);
  launch("attention_backward (bf16, keys)", key_gradient_kernel<DQ, DV>,
         col_tiles * args.shape.kv_heads * args.layout.own.count, kMmaThreads, shared_bytes + statistics_bytes, stream,
         args, grads, static_cast<int>(col_tiles));
  launch("attention_backward (bf16, queries)", query_gradient_kernel<DQ, DV>,
         row_tiles * args.shape.heads * args.layout.own.count, kMmaThreads, shared_bytes, stream, args, grads,
         static_cast<int>(row_tiles));
}

}  // namespace

void mma_backward(cudaStream_t stream, const Args<bf16>& args, const BackwardArgs<bf16>& grads) {
  const int width = args.shape.d_key + args.shape.d_shared, d_value = args.shape.d_value;
  if (width <= 32 && d_value <= 32) return launch_backward<32, 32>(stream, args, grads);
  if (width <= 64 && d_value <= 64) return launch_backward<64, 64>(stream, args, grads);
  if (width <= 96 && d_value <= 64) return launch_backward<96, 64>(stream, args, grads);
  if (width <= 128) return launch_backward<128, 128>(stream, args, grads);
  launch_backward<192, 128>(stream, args, grads);
}

}  // namespace tactus::attention_cuda
