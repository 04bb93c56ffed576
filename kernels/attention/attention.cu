// Attention for training on CUDA: checks, choice of kernels, and the row-wise parts of backward. Tiles are in
// attention_mma_*.cu (bf16) and attention_simt_*.cu (f32, wide bf16 heads).
//
// Order of backward, all on one stream, each gradient written exactly once:
//   1. row_kernel: delta; own columns: their weight and score gradient (which dq needs), their rows of dk, dv and
//   shared partials;
//   2. prompt_zero_kernel: prompt rows between chunk ends, which nobody sees;
//   3. tile kernels: chunk ends' dk, dv and shared partials by column tile; dq by query tile;
//   4. shared_sum_kernel: shared partials summed over kv heads in order.
#include <algorithm>
#include <type_traits>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_common.cuh"
#include "kernels/attention/attention_keys.h"

namespace tactus {
namespace attention_cuda {
namespace {

constexpr int kRowThreads = 256;
constexpr int kRowWarps = kRowThreads / 32;

template <class T>
__device__ float warp_dot(const T* x, const T* y, int n) {
  float dot = 0;
  for (int i = threadIdx.x % 32; i < n; i += 32) dot += static_cast<float>(x[i]) * static_cast<float>(y[i]);
  return lanes_sum<32>(dot);
}

/// The sum of products that the score kernels form, in their order of rounding: for f32 delta and dP then cancel
/// exactly where a query sees one column, as they do in the mathematics. Tensor cores round in an order of their own,
/// so other types sum by lanes.
template <class T>
__device__ float value_dot(const T* x, const T* y, int n) {
  if constexpr (std::is_same_v<T, float>) {
    float dot = 0;
    for (int i = 0; i < n; i += 4) {
      float part = x[i] * y[i];
      for (int k = 1; k < 4; ++k) part = i + k < n ? fmaf(x[i + k], y[i + k], part) : part;
      dot += part;
    }
    return dot;
  } else {
    return warp_dot(x, y, n);
  }
}

template <class T>
__device__ void warp_zero(T* x, int n) {
  for (int i = threadIdx.x % 32; i < n; i += 32) x[i] = static_cast<T>(0.0f);
}

/// delta of each head of the kv head's group and, for a query with an own column, that column's weight (with dropout)
/// and score gradient (without the factor `scale`). Lane 0 writes them.
template <class T>
__device__ void group_scalars(const Args<T>& a, const BackwardArgs<T>& b, const Sequence& s, const Columns& columns,
                              int64_t row, int t, int kv_head, bool has_own) {
  const AttentionShape& shape = a.shape;
  const int group = shape.heads / shape.kv_heads, d_value = shape.d_value, width = shape.d_key + shape.d_shared;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const int64_t at = row * shape.heads + head;
    const T* dout = b.dout.row(row) + static_cast<int64_t>(head) * d_value;
    const float delta = value_dot(dout, b.out.row(row) + static_cast<int64_t>(head) * d_value, d_value);
    if (threadIdx.x % 32 == 0) b.delta[at] = delta;
    if (!has_own) continue;
    const T* q = a.q.row(row) + static_cast<int64_t>(head) * width;
    float dot = warp_dot(q, a.own.k.row(row) + static_cast<int64_t>(kv_head) * shape.d_key, shape.d_key);
    if (shape.d_shared > 0) dot += warp_dot(q + shape.d_key, a.own.shared.row(row), shape.d_shared);
    const float dp = value_dot(dout, a.own.v.row(row) + static_cast<int64_t>(kv_head) * d_value, d_value);
    const float p = exp2f(dot * a.scale_log2 - b.lse[at] * kLog2E), kept_scale = dropout_scale(shape);
    const bool kept = keeps_own_column(shape, s, t, head, columns.visible(t));
    if (threadIdx.x % 32 == 0) {
      b.own_weight[at] = kept ? p * kept_scale : 0.0f;
      b.own_score_grad[at] = p * ((kept ? dp * kept_scale : 0.0f) - delta);
    }
  }
}

/// A warp for each own row and kv head.
template <class T>
__global__ void __launch_bounds__(kRowThreads)
    row_kernel(const __grid_constant__ Args<T> a, const __grid_constant__ BackwardArgs<T> b) {
  const AttentionShape& shape = a.shape;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / 32;
  if (warp >= static_cast<int64_t>(a.layout.own.rows) * shape.kv_heads) return;
  const int64_t row = warp / shape.kv_heads;
  const int kv_head = static_cast<int>(warp % shape.kv_heads), lane = threadIdx.x % 32;
  const Sequence s = sequence_at(a.layout, a.layout.own.row_segment[row]);
  const Columns columns(shape, s);
  const int t = static_cast<int>(row - s.own_begin);
  const bool has_own = columns.has_own(t);
  group_scalars(a, b, s, columns, row, t, kv_head, has_own);
  if (columns.gathered(s.prompt + t)) return;

  const int d_key = shape.d_key, d_value = shape.d_value, width = d_key + shape.d_shared;
  const int group = shape.heads / shape.kv_heads, first_head = kv_head * group;
  T* dk = b.down.k.row(row) + static_cast<int64_t>(kv_head) * d_key;
  T* dv = b.down.v.row(row) + static_cast<int64_t>(kv_head) * d_value;
  if (!has_own) {
    warp_zero(dk, d_key);
    warp_zero(dv, d_value);
    return;
  }
  __syncwarp();  // lane 0 wrote the group's scalars
  const float* weights = b.own_weight + row * shape.heads + first_head;
  const float* score_grads = b.own_score_grad + row * shape.heads + first_head;
  float* dshared = b.dshared + ((b.prompt_rows + row) * shape.kv_heads + kv_head) * shape.d_shared;
  const T* q = a.q.row(row) + static_cast<int64_t>(first_head) * width;
  const T* dout = b.dout.row(row) + static_cast<int64_t>(first_head) * d_value;
  for (int x = lane; x < width; x += 32) {
    float sum = 0;
    for (int h = 0; h < group; ++h) sum += score_grads[h] * static_cast<float>(q[static_cast<int64_t>(h) * width + x]);
    sum *= static_cast<float>(shape.scale);
    if (x < d_key)
      dk[x] = static_cast<T>(sum);
    else
      dshared[x - d_key] = sum;
  }
  for (int x = lane; x < d_value; x += 32) {
    float sum = 0;
    for (int h = 0; h < group; ++h) sum += weights[h] * static_cast<float>(dout[static_cast<int64_t>(h) * d_value + x]);
    dv[x] = static_cast<T>(sum);
  }
}

/// A warp for each prompt row: zeros where no query sees it.
template <class T>
__global__ void __launch_bounds__(kRowThreads)
    prompt_zero_kernel(const __grid_constant__ Args<T> a, const __grid_constant__ BackwardArgs<T> b) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / 32;
  if (row >= b.prompt_rows) return;
  const Sequence s = sequence_at(a.layout, a.layout.prompt.row_segment[row]);
  if (Columns(a.shape, s).gathered(static_cast<int32_t>(row - s.prompt_begin))) return;
  warp_zero(b.dprompt.k.row(row), a.shape.kv_heads * a.shape.d_key);
  warp_zero(b.dprompt.v.row(row), a.shape.kv_heads * a.shape.d_value);
}

/// A thread for each key row and column of the shared key.
template <class T>
__global__ void __launch_bounds__(kRowThreads)
    shared_sum_kernel(const __grid_constant__ Args<T> a, const __grid_constant__ BackwardArgs<T> b) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRowThreads + threadIdx.x;
  const int64_t key = i / a.shape.d_shared;
  if (key >= b.prompt_rows + a.layout.own.rows) return;
  const int x = static_cast<int>(i % a.shape.d_shared);
  const bool in_prompt = key < b.prompt_rows;
  const int64_t row = in_prompt ? key : key - b.prompt_rows;
  const Sequence s = sequence_at(a.layout, (in_prompt ? a.layout.prompt : a.layout.own).row_segment[row]);
  const int32_t j = static_cast<int32_t>(in_prompt ? row - s.prompt_begin : row - s.own_begin + s.prompt);
  // In causal attention an own row between chunk ends is its query's own column.
  const bool seen = Columns(a.shape, s).gathered(j) || (!in_prompt && a.shape.causal);
  float sum = 0;
  if (seen) {
    const float* partial = b.dshared + key * a.shape.kv_heads * a.shape.d_shared + x;
    for (int h = 0; h < a.shape.kv_heads; ++h) sum += partial[static_cast<int64_t>(h) * a.shape.d_shared];
  }
  (in_prompt ? b.dprompt : b.down).shared(row, x) = static_cast<T>(sum);
}

template <class T>
bool aligned_rows(const Mat<T>& m) {
  return reinterpret_cast<uintptr_t>(m.ptr) % 16 == 0 && m.ld * static_cast<int64_t>(sizeof(T)) % 16 == 0;
}
template <class T>
bool aligned_rows(const KeyRows<T>& rows, const AttentionShape& shape) {
  return aligned_rows(rows.k) && aligned_rows(rows.v) && (shape.d_shared == 0 || aligned_rows(rows.shared));
}

template <class T>
Args<T> checked_args(const char* op, const AttentionShape& shape, const KeyLayout& layout, const Mat<const T>& q,
                     const KeyRows<const T>& prompt, const KeyRows<const T>& own) {
  AttentionArgs<T>{shape, layout, q, prompt, own}.check(op);
  const int width = shape.d_key + shape.d_shared;
  check_value(width <= kSimtWidth, op, "d_key + d_shared", "at most 256 on CUDA", width);
  check_value(shape.d_value <= kSimtWidth, op, "d_value", "at most 256 on CUDA", shape.d_value);
  Args<T> args{shape, layout, q, prompt, own, 0, false};
  args.scale_log2 = static_cast<float>(shape.scale * 1.4426950408889634074);
  const int64_t per_16_bytes = 16 / sizeof(T);
  args.vector = shape.d_key % per_16_bytes == 0 && shape.d_shared % per_16_bytes == 0 &&
                shape.d_value % per_16_bytes == 0 && aligned_rows(q) && aligned_rows(own, shape) &&
                (!layout.prompt.offsets || aligned_rows(prompt, shape));
  return args;
}

template <class T>
void run_forward(cudaStream_t stream, const Args<T>& args, const Mat<T>& out, float* lse) {
  if constexpr (std::is_same_v<T, bf16>) {
    if (mma_supports(args.shape.d_key + args.shape.d_shared, args.shape.d_value))
      return mma_forward(stream, args, out, lse);
  }
  simt_forward(stream, args, out, lse);
}
template <class T>
void run_backward(cudaStream_t stream, const Args<T>& args, const BackwardArgs<T>& grads) {
  if constexpr (std::is_same_v<T, bf16>) {
    if (mma_supports(args.shape.d_key + args.shape.d_shared, args.shape.d_value))
      return mma_backward(stream, args, grads);
  }
  simt_backward(stream, args, grads);
}

}  // namespace
}  // namespace attention_cuda

template <class D, class T>
void attention_forward(const Context& ctx, const AttentionShape& shape, KeyLayout layout, Mat<const T> q,
                       KeyRows<const T> prompt, KeyRows<const T> own, Mat<T> out, acc_t<T>* lse) {
  using namespace attention_cuda;
  const char* op = "attention_forward";
  Args<T> args = checked_args(op, shape, layout, q, prompt, own);
  check_shape(op, "out", out, layout.own.rows, shape.heads * shape.d_value);
  args.vector = args.vector && aligned_rows(out);
  run_forward(stream_of(ctx), args, out, lse);
}

template <class D, class T>
void attention_backward(const Context& ctx, const AttentionShape& shape, KeyLayout layout, Mat<const T> q,
                        KeyRows<const T> prompt, KeyRows<const T> own, Mat<const T> out, const acc_t<T>* lse,
                        Mat<const T> dout, Mat<T> dq, KeyRows<T> dprompt, KeyRows<T> down) {
  using namespace attention_cuda;
  const char* op = "attention_backward";
  Args<T> args = checked_args(op, shape, layout, q, prompt, own);
  const AttentionArgs<T> checks{shape, layout, q, prompt, own};
  const int64_t rows = layout.own.rows, prompt_rows = layout.prompt.offsets ? layout.prompt.rows : 0;
  check_shape(op, "out", out, rows, shape.heads * shape.d_value);
  check_shape(op, "dout", dout, rows, shape.heads * shape.d_value);
  check_shape(op, "dq", dq, rows, shape.heads * (shape.d_key + shape.d_shared));
  checks.check_rows(op, "gradient of prompt", dprompt, prompt_rows);
  checks.check_rows(op, "gradient of own", down, rows);
  args.vector = args.vector && aligned_rows(dout) && aligned_rows(dq) && aligned_rows(down, shape) &&
                (prompt_rows == 0 || aligned_rows(dprompt, shape));

  const Tensor scalars = ctx.empty({3, rows, shape.heads}, DType::f32, MemoryTag::workspace);
  const Tensor partial =
      ctx.empty({prompt_rows + rows, shape.kv_heads, shape.d_shared}, DType::f32, MemoryTag::workspace);
  float* delta = scalars.data<float>();
  const BackwardArgs<T> grads{out,
                              dout,
                              lse,
                              dq,
                              dprompt,
                              down,
                              delta,
                              delta + rows * shape.heads,
                              delta + 2 * rows * shape.heads,
                              partial.data<float>(),
                              prompt_rows};
  const cudaStream_t stream = stream_of(ctx);
  launch("attention_backward (rows)", row_kernel<T>, ceil_div(rows * shape.kv_heads, kRowWarps), kRowThreads, 0, stream,
         args, grads);
  if (shape.stride > 1)
    launch("attention_backward (prompt)", prompt_zero_kernel<T>, ceil_div(prompt_rows, kRowWarps), kRowThreads, 0,
           stream, args, grads);
  run_backward(stream, args, grads);
  launch("attention_backward (shared key)", shared_sum_kernel<T>,
         ceil_div((prompt_rows + rows) * shape.d_shared, kRowThreads), kRowThreads, 0, stream, args, grads);
}

#define TACTUS_INSTANTIATE(T)                                                                               \
  template void attention_forward<Cuda, T>(const Context&, const AttentionShape&, KeyLayout, Mat<const T>,  \
                                           KeyRows<const T>, KeyRows<const T>, Mat<T>, float*);             \
  template void attention_backward<Cuda, T>(const Context&, const AttentionShape&, KeyLayout, Mat<const T>, \
                                            KeyRows<const T>, KeyRows<const T>, Mat<const T>, const float*, \
                                            Mat<const T>, Mat<T>, KeyRows<T>, KeyRows<T>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
