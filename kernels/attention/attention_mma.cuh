// Building blocks of the tensor core attention kernels: mma.sync m16n8k16 (bf16 in, f32 sums), ldmatrix, cp.async, and
// the load of gathered rows to shared memory.
//
// Register fragments (PTX ISA, "mma.m16n8k16"): with g = lane / 4 and q = lane % 4, an accumulator tile of 16 x 8 holds
// (row g, columns 2q, 2q + 1) in [0], [1] and (row g + 8, the same columns) in [2], [3]. Two neighbouring accumulator
// tiles, rounded to bf16, are the A operand of the next product, so probabilities never pass through shared memory.
#pragma once

#include "kernels/attention/attention_common.cuh"

namespace tactus::attention_cuda {

constexpr int kMmaWarps = 4;
constexpr int kMmaThreads = 32 * kMmaWarps;
constexpr int kMmaRows = 16 * kMmaWarps;  ///< rows of the side that stays in a block: 16 for each warp

/// Row pitch in shared memory of a tile W columns wide. W is a multiple of 32, so the pitch is an odd number of 16-byte
/// units, and the eight rows that ldmatrix reads at a time fall into different banks.
template <int W>
constexpr int pitch = W + 8;

__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ inline void copy_async_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most N of this thread's latest groups are in flight.
template <int N>
__device__ inline void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ inline void load_matrices(uint32_t (&r)[4], const bf16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], const bf16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}
__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// Two floats to bf16, the first in the lower half.
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ inline float2 unpack_bf16(uint32_t r) {
  return {__uint_as_float(r << 16), __uint_as_float(r & 0xffff0000u)};
}

/// One accumulator strip of 16 rows x 8 N columns.
template <int N>
using Strip = float[N][4];

template <int N>
__device__ inline void clear(Strip<N>& c) {
#pragma unroll
  for (int n = 0; n < N; ++n) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0.0f;
}

/// c [16, 8N] = a b^T over W columns: a 16 rows, b 8N rows, both in shared memory at pitch<W>.
template <int W, int N>
__device__ inline void multiply_rows(Strip<N>& c, const bf16* a, const bf16* b) {
  const int lane = threadIdx.x % 32;
  const bf16* a_lane = a + (lane % 16) * pitch<W> + (lane / 16) * 8;
  const bf16* b_lane = b + (lane % 8 + (lane / 16) * 8) * pitch<W> + ((lane / 8) % 2) * 8;
  clear<N>(c);
#pragma unroll
  for (int k = 0; k < W; k += 16) {
    uint32_t fa[4];
    load_matrices(fa, a_lane + k);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t fb[4];
      load_matrices(fb, b_lane + n * 8 * pitch<W> + k);
      mma(c[n], fa, fb[0], fb[1]);
      mma(c[n + 1], fa, fb[2], fb[3]);
    }
  }
}

/// c [16, W] += p b: p [16, 8N] in registers as packed accumulators, b 8N rows of W columns in shared memory at
/// pitch<W>.
template <int W, int N>
__device__ inline void accumulate_rows(Strip<W / 8>& c, const uint32_t (&p)[N][2], const bf16* b) {
  const int lane = threadIdx.x % 32;
  const bf16* b_lane = b + (lane % 16) * pitch<W> + (lane / 16) * 8;
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    const uint32_t fa[4] = {p[k][0], p[k][1], p[k + 1][0], p[k + 1][1]};
#pragma unroll
    for (int n = 0; n < W / 8; n += 2) {
      uint32_t fb[4];
      load_matrices_transposed(fb, b_lane + k * 8 * pitch<W> + n * 8);
      mma(c[n], fa, fb[0], fb[1]);
      mma(c[n + 1], fa, fb[2], fb[3]);
    }
  }
}

/// A row to load: `first` columns and then `second` ones. Not valid: zeros.
struct RowSource {
  const bf16 *first = nullptr, *second = nullptr;
  bool valid = false;
};

/// Loads ROWS rows, each [first | second] padded with zeros to W columns, to a tile at pitch<W>. Zeros matter: what
/// lies in shared memory may be a NaN, and NaN * 0 would spread. `vector`: all parts begin and end at 16-byte
/// boundaries; then the copies are asynchronous and the caller commits and waits. All threads of the block take part;
/// the caller synchronises.
template <int W, int ROWS, class RowOf>
__device__ inline void load_tile(bf16* tile, int first_width, int second_width, bool vector, const RowOf& row_of) {
  const int width = first_width + second_width;
  if (vector) {
    constexpr int kChunks = W / 8;
    for (int i = threadIdx.x; i < ROWS * kChunks; i += kMmaThreads) {
      const int r = i / kChunks, x = i % kChunks * 8;
      const RowSource from = row_of(r);
      bf16* to = tile + r * pitch<W> + x;
      if (from.valid && x < width)
        copy_async_16(to, x < first_width ? from.first + x : from.second + (x - first_width));
      else
        *reinterpret_cast<uint4*>(to) = make_uint4(0, 0, 0, 0);
    }
  } else {
    for (int i = threadIdx.x; i < ROWS * W; i += kMmaThreads) {
      const int r = i / W, x = i % W;
      const RowSource from = row_of(r);
      bf16 value{};
      if (from.valid && x < width) value = x < first_width ? from.first[x] : from.second[x - first_width];
      tile[r * pitch<W> + x] = value;
    }
  }
}

/// Rows t0 .. of a matrix with one row for each own row of the sequence, columns [column, column + width).
template <int W, int ROWS>
__device__ inline void load_own_rows(bf16* tile, const Mat<const bf16>& m, const Sequence& s, int t0, int64_t column,
                                     int width, bool vector) {
  load_tile<W, ROWS>(tile, width, 0, vector, [&](int r) {
    RowSource row;
    row.valid = t0 + r < s.own;
    if (row.valid) row.first = m.row(s.own_begin + t0 + r) + column;
    return row;
  });
}

/// Keys [d_key | d_shared] of key rows row_of(r), -1 for none.
template <int W, int ROWS, class KeyRowOf>
__device__ inline void load_keys(bf16* tile, const Args<bf16>& a, const Sequence& s, int kv_head,
                                 const KeyRowOf& key_row_of) {
  load_tile<W, ROWS>(tile, a.shape.d_key, a.shape.d_shared, a.vector, [&](int r) {
    RowSource row;
    const int j = key_row_of(r);
    row.valid = j >= 0;
    if (row.valid) {
      const KeyRows<const bf16>& from = source_of(a.prompt, a.own, s, j);
      row.first = from.k.row(row_in_source(s, j)) + kv_head * a.shape.d_key;
      if (a.shape.d_shared > 0) row.second = from.shared.row(row_in_source(s, j));
    }
    return row;
  });
}
template <int W, int ROWS, class KeyRowOf>
__device__ inline void load_values(bf16* tile, const Args<bf16>& a, const Sequence& s, int kv_head,
                                   const KeyRowOf& key_row_of) {
  load_tile<W, ROWS>(tile, a.shape.d_value, 0, a.vector, [&](int r) {
    RowSource row;
    const int j = key_row_of(r);
    row.valid = j >= 0;
    if (row.valid) row.first = source_of(a.prompt, a.own, s, j).v.row(row_in_source(s, j)) + kv_head * a.shape.d_value;
    return row;
  });
}

/// Key row of the r-th column of the tile at c0; -1 from column `end` on.
struct ColumnTile {
  const Columns& columns;
  int c0, end;
  __device__ int operator()(int r) const { return c0 + r < end ? columns.key_row(c0 + r) : -1; }
};
/// Key row of the r-th query of the tile at t0 itself, for own columns; -1 where the query has none.
struct OwnTile {
  const Columns& columns;
  int t0, own;
  __device__ int operator()(int r) const {
    return t0 + r < own && columns.has_own(t0 + r) ? columns.prompt + t0 + r : -1;
  }
};

/// Writes columns x, x + 1 of a row `width` wide; the second may be beyond it.
__device__ inline void store_pair(bf16* row, int x, int width, float v0, float v1, bool vector) {
  if (x >= width) return;
  if (vector) {
    *reinterpret_cast<uint32_t*>(row + x) = pack_bf16(v0, v1);
    return;
  }
  row[x] = bf16(v0);
  if (x + 1 < width) row[x + 1] = bf16(v1);
}

/// Keep bits of a warp's 16 queries t .. t + 15 and 64 columns from c0: in each lane those of rows g and g + 8 and
/// column groups 2q and 2q + 1, so that a lane works out four groups and asks its quad for the others. The caller's
/// accumulator layout has rows = queries.
struct QueryKeepBits {
  uint32_t word = 0xffffffffu;
  __device__ QueryKeepBits(const DropoutKey& d, uint32_t utterance, int t, int head, int c0) {
    if (!d.active()) return;
    const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      word |= keep_bits(d, utterance, static_cast<uint32_t>(t + g + (i / 2) * 8), static_cast<uint32_t>(head),
                        static_cast<uint32_t>(c0 / 8 + 2 * q + i % 2))
              << (8 * i);
  }
  /// Bits of accumulator tile n: bit e for row g, bit 16 + e for row g + 8, e = 0, 1. All lanes call it.
  __device__ uint32_t of_tile(int n) const {
    const int lane = threadIdx.x % 32;
    const uint32_t w = __shfl_sync(kFullWarp, word, (lane & ~3) | (n / 2));
    return w >> (8 * (n % 2) + 2 * (lane % 4));
  }
};

}  // namespace tactus::attention_cuda
