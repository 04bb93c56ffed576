// What all CUDA kernels of training attention share: arguments, which columns a query sees, and the launch helper.
//
// Vocabulary: a *column* is a gathered key (chunk end, or the clamped last row in full mode); a query's *own column* is
// its own key row where that row is not a chunk end. Kernels tile the gathered columns and treat the own column apart,
// because it differs from query to query.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/cuda.h"
#include "kernels/attention/attention.h"

namespace tactus::attention_cuda {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr unsigned kFullWarp = 0xffffffffu;

template <class T>
struct Args {
  AttentionShape shape;
  KeyLayout layout;
  Mat<const T> q;
  KeyRows<const T> prompt, own;
  float scale_log2;  ///< shape.scale log2(e): softmax runs in base 2
  bool vector;       ///< every row and every head of every matrix begins at a multiple of 16 bytes
};

/// The further arguments of backward. Workspaces: delta, own_weight and own_score_grad [own.rows, heads]; dshared
/// [prompt.rows + own.rows, kv_heads, d_shared], the shared key's gradient before the sum over kv heads.
template <class T>
struct BackwardArgs {
  Mat<const T> out, dout;
  const float* lse;
  Mat<T> dq;
  KeyRows<T> dprompt, down;
  float *delta, *own_weight, *own_score_grad, *dshared;
  int64_t prompt_rows;
};

struct Sequence {
  int32_t prompt_begin, prompt, own_begin, own;
  uint32_t utterance;
  __device__ int32_t keys() const { return prompt + own; }
};

__device__ inline Sequence sequence_at(const KeyLayout& layout, int32_t i) {
  Sequence s;
  s.prompt_begin = layout.prompt.offsets ? layout.prompt.offsets[i] : 0;
  s.prompt = layout.prompt_length(i);
  s.own_begin = layout.own.offsets[i];
  s.own = layout.own_length(i);
  s.utterance = layout.own.utterance ? static_cast<uint32_t>(layout.own.utterance[i]) : 0;
  return s;
}

/// The column rules of kernels/attention/attention.h for one sequence. `t` is a query's row within its sequence, `c` a column.
struct Columns {
  int32_t stride, prompt, keys;
  bool causal;
  __device__ Columns(const AttentionShape& shape, const Sequence& s)
      : stride(shape.stride), prompt(s.prompt), keys(s.keys()), causal(shape.causal) {}
  /// Gathered columns of the sequence.
  __device__ int32_t count() const { return causal ? keys / stride : (keys + stride - 1) / stride; }
  /// Gathered columns that query t sees: 0 .. visible - 1. It is also the number of its own column, where it has one.
  __device__ int32_t visible(int32_t t) const { return causal ? (prompt + t + 1) / stride : count(); }
  __device__ bool has_own(int32_t t) const { return causal && (prompt + t + 1) % stride != 0; }
  __device__ int32_t key_row(int32_t c) const { return min(stride * (c + 1), keys) - 1; }
  /// First query that sees column c; it may lie beyond the last query.
  __device__ int32_t first_query(int32_t c) const { return causal ? max(stride * (c + 1) - 1 - prompt, 0) : 0; }
  __device__ bool gathered(int32_t j) const { return (j + 1) % stride == 0 || (!causal && j == keys - 1); }
};

template <class M>
__device__ const M& source_of(const M& prompt, const M& own, const Sequence& s, int32_t j) {
  return j < s.prompt ? prompt : own;
}
/// Row within its source of key row j.
__device__ inline int64_t row_in_source(const Sequence& s, int32_t j) {
  return j < s.prompt ? s.prompt_begin + j : s.own_begin + (j - s.prompt);
}

/// Block of a one-dimensional grid over (sequence, head, tile), tiles fastest.
struct BlockPlace {
  int32_t tile, head, sequence;
};
__device__ inline BlockPlace block_place(int32_t tiles, int32_t heads) {
  const int32_t b = static_cast<int32_t>(blockIdx.x), rest = b / tiles;
  return {b % tiles, rest % heads, rest / heads};
}

__device__ inline bool keeps_own_column(const AttentionShape& shape, const Sequence& s, int32_t t, int32_t head,
                                        int32_t c) {
  if (!shape.dropout.active()) return true;
  const uint32_t bits = keep_bits(shape.dropout, s.utterance, static_cast<uint32_t>(t), static_cast<uint32_t>(head),
                                  static_cast<uint32_t>(c) / 8);
  return (bits >> (c & 7)) & 1;
}
__device__ inline float dropout_scale(const AttentionShape& shape) {
  return shape.dropout.active() ? shape.dropout.scale() : 1.0f;
}

/// Butterfly over WIDTH neighbouring lanes: every lane gets the same bits.
template <int WIDTH>
__device__ inline float lanes_sum(float x) {
#pragma unroll
  for (int d = WIDTH / 2; d > 0; d /= 2) x += __shfl_xor_sync(kFullWarp, x, d);
  return x;
}
template <int WIDTH>
__device__ inline float lanes_max(float x) {
#pragma unroll
  for (int d = WIDTH / 2; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(kFullWarp, x, d));
  return x;
}
/// The value that is subtracted in exponents; where nothing was seen yet, any finite one gives exp2(-inf) = 0 instead
/// of NaN.
__device__ inline float finite_max(float m) { return m == -INFINITY ? 0.0f : m; }

/// Launches on `stream` with dynamic shared memory beyond 48 KB where needed. Sequences, heads and tiles share grid.x,
/// whose limit is 2^31 - 1 where those of y and z are 65,535.
template <class... P, class... A>
void launch(const char* name, void (*kernel)(P...), int64_t blocks, int threads, int64_t shared_bytes,
            cudaStream_t stream, const A&... args) {
  if (blocks == 0) return;
  if (blocks > INT32_MAX)
    throw Error(std::string(name) + ": " + std::to_string(blocks) +
                " blocks, more than a grid holds; use smaller batches");
  if (shared_bytes > 48 * 1024)
    cuda_check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
        name);
  kernel<<<static_cast<unsigned>(blocks), threads, static_cast<size_t>(shared_bytes), stream>>>(args...);
  cuda_check_launch(name);
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Gathered columns of the longest sequence, at most.
inline int64_t most_columns(const AttentionShape& shape, const KeyLayout& layout) {
  return ceil_div((layout.prompt.offsets ? layout.prompt.longest : 0) + static_cast<int64_t>(layout.own.longest),
                  shape.stride);
}

/// Tensor core kernels (attention_mma_*.cu), for bf16 and head widths up to mma_supports.
bool mma_supports(int width_qk, int d_value);
void mma_forward(cudaStream_t stream, const Args<bf16>& args, Mat<bf16> out, float* lse);
void mma_backward(cudaStream_t stream, const Args<bf16>& args, const BackwardArgs<bf16>& grads);

/// Kernels on plain FMA (attention_simt_*.cu), for f32 at full precision and for wider bf16 heads; widths up to
/// kSimtWidth.
constexpr int kSimtWidth = 256;
template <class T>
void simt_forward(cudaStream_t stream, const Args<T>& args, Mat<T> out, float* lse);
template <class T>
void simt_backward(cudaStream_t stream, const Args<T>& args, const BackwardArgs<T>& grads);

}  // namespace tactus::attention_cuda
