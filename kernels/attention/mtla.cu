// CUDA gates and running sums of temporal compression: one warp per chunk. Chunks of a sequence are counted over
// [prompt ; own], so a chunk may begin in the prompt and end in the own rows.
#include "kernels/attention/mtla.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kWarps = 8;
constexpr int kChunkLanes = 8;                // threads that share the sequences of a chunk number
constexpr int64_t kSharedFloats = 12 * 1024;  // 48 KiB, what a block has without asking for more

template <class T>
struct Args {
  KeyLayout layout;
  int stride;
  GateRows<T> prompt, own;
  Mat<const T> code;
  int64_t chunks;  ///< of the longest sequence possible; shorter ones leave their last chunks empty
  bool wide;       ///< all latents and sums
};

/// Where row j of a sequence lies: in the prompt's matrices or in the own ones.
struct Place {
  bool in_prompt;
  int64_t row;
};
__device__ inline Place place_of(const KeyLayout& layout, int32_t i, int64_t j) {
  const int64_t prompt = layout.prompt_length(i);
  if (j < prompt) return {true, layout.prompt.offsets[i] + j};
  return {false, layout.own.offsets[i] + j - prompt};
}
template <class S>
__device__ const S& pick(const Place& at, const S& prompt, const S& own) {
  return at.in_prompt ? prompt : own;
}

/// Rows [begin, end) of one chunk; empty beyond the end of the sequence.
struct Chunk {
  int32_t sequence;
  int64_t number, begin, end;
};
template <class T>
__device__ Chunk chunk_of(const Args<T>& a, int32_t sequence, int64_t number) {
  const int64_t length = a.layout.prompt_length(sequence) + a.layout.own_length(sequence);
  const int64_t begin = number * a.stride, end = begin + a.stride;
  return {sequence, number, begin, end < length ? end : length};
}
/// The chunk of warp `index`; sequence -1 beyond the last one.
template <class T>
__device__ Chunk chunk_at(const Args<T>& a, int64_t index) {
  const int64_t sequence = index / a.chunks;
  if (sequence >= a.layout.own.count) return {-1, 0, 0, 0};
  return chunk_of(a, static_cast<int32_t>(sequence), index - sequence * a.chunks);
}

template <class T>
__global__ void __launch_bounds__(kWarp* kWarps)
    forward_kernel(Args<T> a, GateSums<T> prompt_out, GateSums<T> own_out) {
  const Chunk chunk = chunk_at(a, static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.y);
  if (chunk.sequence < 0) return;
  const T* code = a.code.row(chunk.number);
  for (int64_t j = chunk.begin; j < chunk.end; ++j) {
    const Place at = place_of(a.layout, chunk.sequence, j);
    const T* p = pick(at, a.prompt, a.own).p.row(at.row);
    float dot = 0;
    for (int64_t c = threadIdx.x; c < a.code.cols; c += kWarp) dot += to_float(code[c]) * to_float(p[c]);
    dot = warp_sum(dot);
    if (threadIdx.x == 0) pick(at, prompt_out, own_out).gate[at.row] = sigmoid(dot);
  }
  __syncwarp();  // the gates of lane 0 are read back by all lanes
  const int64_t width = a.own.c.cols;
  for (int64_t c = static_cast<int64_t>(threadIdx.x) * kGroup; c < width; c += kWarp * kGroup) {
    const int n = static_cast<int>(width - c < kGroup ? width - c : kGroup);
    float sum[kGroup] = {};
    for (int64_t j = chunk.begin; j < chunk.end; ++j) {
      const Place at = place_of(a.layout, chunk.sequence, j);
      const GateSums<T>& out = pick(at, prompt_out, own_out);
      const float gate = out.gate[at.row];
      float v[kGroup];
      load_group(pick(at, a.prompt, a.own).c.row(at.row) + c, n, a.wide, v);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) sum[i] += gate * v[i];
      store_group(out.sum.row(at.row) + c, n, a.wide, sum);
    }
  }
}

template <class T>
struct Gradients {
  const float *prompt_gate, *own_gate;
  Mat<const T> prompt_dsum, own_dsum;
  GateGradients<T> prompt_out, own_out;
  float* dlogit;  ///< gradients of the gates' logits, prompt rows first
  int64_t prompt_rows;
};

/// Runs back through a chunk: the gradient of w_j c_j is the sum of dsum over rows j .. end of the chunk, kept in
/// shared memory, where each lane alone touches its own columns.
template <class T>
__global__ void __launch_bounds__(kWarp* kWarps) backward_kernel(Args<T> a, Gradients<T> g) {
  extern __shared__ float shared[];
  const Chunk chunk = chunk_at(a, static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y);
  if (chunk.sequence < 0) return;
  const int64_t width = a.own.c.cols;
  float* sum = shared + threadIdx.y * width;
  for (int64_t c = threadIdx.x; c < width; c += kWarp) sum[c] = 0;
  const T* code = a.code.row(chunk.number);
  for (int64_t j = chunk.end - 1; j >= chunk.begin; --j) {
    const Place at = place_of(a.layout, chunk.sequence, j);
    const float gate = pick(at, g.prompt_gate, g.own_gate)[at.row];
    const T* dsum = pick(at, g.prompt_dsum, g.own_dsum).row(at.row);
    const T* latent = pick(at, a.prompt, a.own).c.row(at.row);
    const GateGradients<T>& out = pick(at, g.prompt_out, g.own_out);
    T *dc = out.dc.row(at.row), *dp = out.dp.row(at.row);
    float dot = 0;
    for (int64_t c = threadIdx.x; c < width; c += kWarp) {
      const float total = sum[c] + to_float(dsum[c]);
      sum[c] = total;
      dot += total * to_float(latent[c]);
      dc[c] = from_float<T>(gate * total);
    }
    const float grad = warp_sum(dot) * gate * (1.0f - gate);
    for (int64_t c = threadIdx.x; c < a.code.cols; c += kWarp) dp[c] = from_float<T>(grad * to_float(code[c]));
    if (threadIdx.x == 0) g.dlogit[at.in_prompt ? at.row : g.prompt_rows + at.row] = grad;
  }
}

/// dcode[chunk] = sum over sequences and rows of dlogit p. Lane y takes every eighth sequence; lanes are added in
/// order.
template <class T>
__global__ void __launch_bounds__(kWarp* kChunkLanes)
    code_kernel(Args<T> a, const float* dlogit, int64_t prompt_rows, Mat<T> dcode) {
  __shared__ float sums[kChunkLanes][kWarp];
  const int64_t c = static_cast<int64_t>(blockIdx.y) * kWarp + threadIdx.x;
  float sum = 0;
  if (c < dcode.cols) {
    for (int32_t i = static_cast<int32_t>(threadIdx.y); i < a.layout.own.count; i += kChunkLanes) {
      const Chunk chunk = chunk_of(a, i, blockIdx.x);
      for (int64_t j = chunk.begin; j < chunk.end; ++j) {
        const Place at = place_of(a.layout, i, j);
        const float grad = dlogit[at.in_prompt ? at.row : prompt_rows + at.row];
        sum += grad * to_float(pick(at, a.prompt, a.own).p(at.row, c));
      }
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= dcode.cols) return;
  for (int y = 1; y < kChunkLanes; ++y) sum += sums[y][threadIdx.x];
  dcode(blockIdx.x, c) = from_float<T>(sum);
}

template <class T>
Args<T> make_args(const char* op, const KeyLayout& layout, int stride, const GateRows<T>& prompt,
                  const GateRows<T>& own, const Mat<const T>& code) {
  check_value(stride >= 1, op, "stride", "at least 1", stride);
  check_value(!layout.prompt.offsets || layout.prompt.count == layout.own.count, op, "number of prompts",
              "the number of sequences", layout.prompt.count);
  const int64_t prompt_rows = layout.prompt.offsets ? layout.prompt.rows : 0;
  check_shape(op, "prompt c", prompt.c, prompt_rows, own.c.cols);
  check_shape(op, "prompt p", prompt.p, prompt_rows, code.cols);
  check_shape(op, "own c", own.c, layout.own.rows, own.c.cols);
  check_shape(op, "own p", own.p, layout.own.rows, code.cols);
  const int64_t longest = (layout.prompt.offsets ? layout.prompt.longest : 0) + int64_t{layout.own.longest};
  // Longest prompt and longest own part need not be of one sequence: chunks beyond the code are then beyond all
  // sequences.
  const int64_t chunks = std::min(ceil_div(longest, stride), code.rows);
  return {layout, stride, prompt, own, code, chunks, wide_rows(own.c) && wide_rows(prompt.c)};
}

}  // namespace

template <class D, class T>
void gate_sum_forward(const Context& ctx, KeyLayout layout, int stride, GateRows<T> prompt, GateRows<T> own,
                      Mat<const T> code, GateSums<T> prompt_out, GateSums<T> own_out) {
  const char* op = "gate_sum_forward";
  Args<T> a = make_args(op, layout, stride, prompt, own, code);
  check_shape(op, "prompt sums", prompt_out.sum, prompt.c.rows, own.c.cols);
  check_shape(op, "own sums", own_out.sum, own.c.rows, own.c.cols);
  a.wide = a.wide && wide_rows(prompt_out.sum) && wide_rows(own_out.sum);
  const int64_t warps = a.chunks * layout.own.count;
  if (warps == 0) return;
  forward_kernel<T>
      <<<row_grid(ceil_div(warps, kWarps)), dim3(kWarp, kWarps), 0, stream_of(ctx)>>>(a, prompt_out, own_out);
  cuda_check_launch(op);
}

template <class D, class T>
void gate_sum_backward(const Context& ctx, KeyLayout layout, int stride, GateRows<T> prompt, GateRows<T> own,
                       Mat<const T> code, const acc_t<T>* prompt_gate, const acc_t<T>* own_gate,
                       Mat<const T> prompt_dsum, Mat<const T> own_dsum, GateGradients<T> prompt_out,
                       GateGradients<T> own_out, Mat<T> dcode) {
  const char* op = "gate_sum_backward";
  const Args<T> a = make_args(op, layout, stride, prompt, own, code);
  const int64_t width = own.c.cols, prompt_rows = prompt.c.rows;
  check_shape(op, "prompt dsum", prompt_dsum, prompt_rows, width);
  check_shape(op, "own dsum", own_dsum, layout.own.rows, width);
  check_shape(op, "prompt dc", prompt_out.dc, prompt_rows, width);
  check_shape(op, "own dc", own_out.dc, layout.own.rows, width);
  check_shape(op, "prompt dp", prompt_out.dp, prompt_rows, code.cols);
  check_shape(op, "own dp", own_out.dp, layout.own.rows, code.cols);
  check_shape(op, "dcode", dcode, code.rows, code.cols);
  check_value(width <= kSharedFloats, op, "own c.cols", "at most 12288", width);
  const Tensor dlogit = ctx.empty(Shape{prompt_rows + layout.own.rows}, DType::f32, MemoryTag::workspace);
  const int64_t warps = a.chunks * layout.own.count;
  if (warps > 0) {
    const int64_t per_block = std::clamp<int64_t>(kSharedFloats / std::max<int64_t>(width, 1), 1, kWarps);
    const Gradients<T> g{prompt_gate, own_gate, prompt_dsum,          own_dsum,
                         prompt_out,  own_out,  dlogit.data<float>(), prompt_rows};
    backward_kernel<T><<<row_grid(ceil_div(warps, per_block)), dim3(kWarp, static_cast<unsigned>(per_block)),
                         static_cast<size_t>(per_block * width) * sizeof(float), stream_of(ctx)>>>(a, g);
    cuda_check_launch(op);
  }
  if (code.rows == 0 || code.cols == 0) return;
  const dim3 grid(row_grid(code.rows), static_cast<unsigned>(ceil_div(code.cols, kWarp)));
  code_kernel<T>
      <<<grid, dim3(kWarp, kChunkLanes), 0, stream_of(ctx)>>>(a, dlogit.data<const float>(), prompt_rows, dcode);
  cuda_check_launch(op);
}

#define TACTUS_INSTANTIATE(T)                                                                                        \
  template void gate_sum_forward<Cuda, T>(const Context&, KeyLayout, int, GateRows<T>, GateRows<T>, Mat<const T>,    \
                                          GateSums<T>, GateSums<T>);                                                 \
  template void gate_sum_backward<Cuda, T>(const Context&, KeyLayout, int, GateRows<T>, GateRows<T>, Mat<const T>,   \
                                           const float*, const float*, Mat<const T>, Mat<const T>, GateGradients<T>, \
                                           GateGradients<T>, Mat<T>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
