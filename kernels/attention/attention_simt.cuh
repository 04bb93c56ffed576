// Building blocks of the attention kernels on plain FMA. Tiles hold f32 in shared memory; a block of 16 x 16 threads
// works on B x B scores, thread (ty, tx) on rows ty + 16 a and columns tx + 16 b, so that a row of scores lies in 16
// neighbouring lanes.
#pragma once

#include "kernels/attention/attention_common.cuh"

namespace tactus::attention_cuda {

constexpr int kSimtThreads = 256;

/// Row pitch in floats of a tile with `width` columns: an odd number of 16-byte units, so that rows can be read four
/// floats at a time without bank conflicts.
__host__ __device__ inline int simt_pitch(int width) { return ((width + 3) / 4 | 1) * 4; }

/// Places of the operands of a block's tiles, B rows each, in floats from the start of shared memory.
template <int B>
struct SimtLayout {
  int pitch_qk, pitch_v;
  static constexpr int pitch_score = B + 4;  ///< B / 4 is even: odd in units of 16 bytes
  __host__ __device__ explicit SimtLayout(const AttentionShape& shape)
      : pitch_qk(simt_pitch(shape.d_key + shape.d_shared)), pitch_v(simt_pitch(shape.d_value)) {}
  __host__ __device__ int qk() const { return B * pitch_qk; }
  __host__ __device__ int v() const { return B * pitch_v; }
  __host__ __device__ static constexpr int score() { return B * pitch_score; }
  /// Keep bits, one byte for each row and group of 8 columns.
  static constexpr int keep_bytes = B * B / 8;
};

/// A row to load: `first` columns and then `second` ones. Not valid: zeros.
template <class T>
struct SimtRow {
  const T *first = nullptr, *second = nullptr;
  bool valid = false;
};
/// Loads B rows, each row_of(r) = [first | second], zero padded to `pitch` columns, as f32. The caller synchronises.
template <int B, class RowOf>
__device__ inline void simt_load(float* tile, int pitch, int first_width, int second_width, const RowOf& row_of) {
  const int lane = threadIdx.x % 32;
  for (int r = threadIdx.x / 32; r < B; r += kSimtThreads / 32) {
    const auto from = row_of(r);
    for (int x = lane; x < pitch; x += 32) {
      float value = 0;
      if (from.valid && x < first_width + second_width)
        value = static_cast<float>(x < first_width ? from.first[x] : from.second[x - first_width]);
      tile[r * pitch + x] = value;
    }
  }
}

template <int B, class T>
__device__ inline void simt_load_own(float* tile, int pitch, const Mat<const T>& m, const Sequence& s, int t0,
                                     int64_t column, int width) {
  simt_load<B>(tile, pitch, width, 0, [&](int r) {
    SimtRow<T> row;
    row.valid = t0 + r < s.own;
    if (row.valid) row.first = m.row(s.own_begin + t0 + r) + column;
    return row;
  });
}

/// Keys and values of the gathered columns c0 .. c0 + B - 1, zeros from column `end` on.
template <int B, class T>
__device__ inline void simt_load_columns(float* keys, float* values, const SimtLayout<B>& layout, const Args<T>& a,
                                         const Sequence& s, const Columns& columns, int kv_head, int c0, int end) {
  simt_load<B>(keys, layout.pitch_qk, a.shape.d_key, a.shape.d_shared, [&](int r) {
    SimtRow<T> row;
    row.valid = c0 + r < end;
    if (row.valid) {
      const int j = columns.key_row(c0 + r);
      const KeyRows<const T>& from = source_of(a.prompt, a.own, s, j);
      row.first = from.k.row(row_in_source(s, j)) + static_cast<int64_t>(kv_head) * a.shape.d_key;
      if (a.shape.d_shared > 0) row.second = from.shared.row(row_in_source(s, j));
    }
    return row;
  });
  simt_load<B>(values, layout.pitch_v, a.shape.d_value, 0, [&](int r) {
    SimtRow<T> row;
    row.valid = c0 + r < end;
    if (row.valid) {
      const int j = columns.key_row(c0 + r);
      row.first =
          source_of(a.prompt, a.own, s, j).v.row(row_in_source(s, j)) + static_cast<int64_t>(kv_head) * a.shape.d_value;
    }
    return row;
  });
}

/// Keep bits of queries t0 .. and columns c0 .. of a B x B tile.
template <int B>
__device__ inline void simt_keep_bits(uint8_t* keep, const DropoutKey& d, uint32_t utterance, int t0, int head,
                                      int c0) {
  if (!d.active()) return;
  for (int i = threadIdx.x; i < B * B / 8; i += kSimtThreads)
    keep[i] = static_cast<uint8_t>(keep_bits(d, utterance, static_cast<uint32_t>(t0 + i / (B / 8)),
                                             static_cast<uint32_t>(head), static_cast<uint32_t>(c0 / 8 + i % (B / 8))));
}
template <int B>
__device__ inline bool simt_kept(const uint8_t* keep, int row, int col) {
  return keep[row * (B / 8) + col / 8] >> (col % 8) & 1;
}

/// s[a][b] = x[ty + 16 a] . y[tx + 16 b] over `width` columns (zero padded to a multiple of 4).
template <int R>
__device__ inline void simt_dots(float (&s)[R][R], const float* x, const float* y, int pitch, int width) {
  const float* x_row = x + threadIdx.x / 16 * pitch;
  const float* y_row = y + threadIdx.x % 16 * pitch;
#pragma unroll
  for (int a = 0; a < R; ++a)
#pragma unroll
    for (int b = 0; b < R; ++b) s[a][b] = 0;
  for (int k = 0; k < width; k += 4) {
    float4 xs[R], ys[R];
#pragma unroll
    for (int a = 0; a < R; ++a) xs[a] = *reinterpret_cast<const float4*>(x_row + 16 * a * pitch + k);
#pragma unroll
    for (int b = 0; b < R; ++b) ys[b] = *reinterpret_cast<const float4*>(y_row + 16 * b * pitch + k);
#pragma unroll
    for (int a = 0; a < R; ++a)
#pragma unroll
      for (int b = 0; b < R; ++b)
        s[a][b] += xs[a].x * ys[b].x + xs[a].y * ys[b].y + xs[a].z * ys[b].z + xs[a].w * ys[b].w;
  }
}

/// sum[a][v] += w[ty + 16 a][n] y[n][tx + 16 v] over n < B, for columns below `pitch`.
template <int B, int R, int V>
__device__ inline void simt_accumulate(float (&sum)[R][V], const float* w, const float* y, int pitch) {
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
#pragma unroll 4
  for (int n = 0; n < B; ++n) {
    float ws[R];
#pragma unroll
    for (int a = 0; a < R; ++a) ws[a] = w[(ty + 16 * a) * SimtLayout<B>::pitch_score + n];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      if (tx + 16 * v >= pitch) continue;
      const float value = y[n * pitch + tx + 16 * v];
#pragma unroll
      for (int a = 0; a < R; ++a) sum[a][v] += ws[a] * value;
    }
  }
}
/// The same with the weights transposed: sum[a][v] += w[n][ty + 16 a] y[n][tx + 16 v].
template <int B, int R, int V>
__device__ inline void simt_accumulate_transposed(float (&sum)[R][V], const float* w, const float* y, int pitch) {
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
#pragma unroll 4
  for (int n = 0; n < B; ++n) {
    float ws[R];
#pragma unroll
    for (int a = 0; a < R; ++a) ws[a] = w[n * SimtLayout<B>::pitch_score + ty + 16 * a];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      if (tx + 16 * v >= pitch) continue;
      const float value = y[n * pitch + tx + 16 * v];
#pragma unroll
      for (int a = 0; a < R; ++a) sum[a][v] += ws[a] * value;
    }
  }
}

}  // namespace tactus::attention_cuda
