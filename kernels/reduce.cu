// CUDA sums in two passes: partial sums by blocks over parts that depend on the shape alone, then a fixed order over
// parts.
#include "kernels/reduce.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_reduce.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kThreads = 256;
constexpr int64_t kMaxParts = 256;

/// partial[blockIdx.x, c] = sum of rows [blockIdx.x * part_rows, ...). blockDim.x lanes along the columns, in groups of
/// eight.
template <class T>
__global__ void __launch_bounds__(kThreads)
    column_parts_kernel(Mat<const T> x, int64_t part_rows, float* partial, bool wide) {
  __shared__ float sums[kThreads][kGroup + 1];  // one column of padding keeps lanes in different banks
  const int64_t c = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kGroup;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * part_rows;
  const int64_t end = begin + part_rows < x.rows ? begin + part_rows : x.rows;
  const int n = static_cast<int>(c >= x.cols ? 0 : x.cols - c < kGroup ? x.cols - c : kGroup);
  float sum[kGroup] = {};
  if (n > 0) {
    for (int64_t r = begin + threadIdx.y; r < end; r += blockDim.y) {
      float v[kGroup];
      load_group(x.row(r) + c, n, wide, v);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) sum[i] += v[i];
    }
  }
#pragma unroll
  for (int i = 0; i < kGroup; ++i) sums[thread_in_block()][i] = sum[i];
  __syncthreads();
  if (threadIdx.y != 0) return;
  for (unsigned y = 1; y < blockDim.y; ++y) {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum[i] += sums[y * blockDim.x + threadIdx.x][i];
  }
#pragma unroll
  for (int i = 0; i < kGroup; ++i) {
    if (i < n) partial[static_cast<int64_t>(blockIdx.x) * x.cols + c + i] = sum[i];
  }
}

/// Sums in double, so that the error of a loss does not grow with the number of tokens.
template <bool kSquare>
__global__ void __launch_bounds__(kThreads) sum_parts_kernel(int64_t n, const float* x, double* partial) {
  __shared__ double scratch[kWarp];
  double sum = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const double v = x[i];
    sum += kSquare ? v * v : v;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class Out>
__global__ void __launch_bounds__(kThreads) finish_sum_kernel(int parts, const double* partial, Out* out) {
  __shared__ double scratch[kWarp];
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < parts; i += kThreads) sum += partial[i];
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) *out = static_cast<Out>(sum);
}

template <bool kSquare, class Out>
void sum_values(const Context& ctx, int64_t n, const float* x, Out* out, const char* name) {
  const int64_t parts = std::min<int64_t>(ceil_div(n, 8 * kThreads), 1024);
  const Tensor partial = ctx.empty(Shape{parts}, DType::f64, MemoryTag::workspace);
  if (parts > 0) {
    sum_parts_kernel<kSquare>
        <<<static_cast<unsigned>(parts), kThreads, 0, stream_of(ctx)>>>(n, x, partial.data<double>());
    cuda_check_launch(name);
  }
  finish_sum_kernel<<<1, kThreads, 0, stream_of(ctx)>>>(static_cast<int>(parts), partial.data<double>(), out);
  cuda_check_launch(name);
}

}  // namespace

template <class D, class T>
void column_sum(const Context& ctx, Mat<const T> x, acc_t<T>* out, bool accumulate) {
  check_shape("column_sum", "x", x, x.rows, x.cols);
  if (x.cols == 0) return;
  const int64_t groups = ceil_div(x.cols, kGroup);
  int lanes = 1;
  while (lanes < kWarp && lanes < groups) lanes *= 2;
  const dim3 block(lanes, kThreads / lanes);
  const int64_t part_rows = std::max<int64_t>(ceil_div(x.rows, kMaxParts), 4 * block.y);
  const int64_t parts = ceil_div(x.rows, part_rows);
  const Tensor partial = ctx.empty(Shape{parts, x.cols}, DType::f32, MemoryTag::workspace);
  if (parts > 0) {
    const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(ceil_div(groups, lanes)));
    column_parts_kernel<T><<<grid, block, 0, stream_of(ctx)>>>(x, part_rows, partial.data<float>(), wide_rows(x));
    cuda_check_launch("column_sum");
  }
  finish_columns(ctx, partial.data<float>(), parts, x.cols, x.cols, out, nullptr, accumulate);
}

template <class D, class A>
void reduce_sum(const Context& ctx, int64_t n, const A* x, A* out) {
  check_value(n >= 0, "reduce_sum", "n", "not negative", n);
  sum_values<false>(ctx, n, x, out, "reduce_sum");
}

template <class D, class A>
void squared_norm_to(const Context& ctx, int64_t n, const A* x, double* out) {
  check_value(n >= 0, "squared_norm", "n", "not negative", n);
  sum_values<true>(ctx, n, x, out, "squared_norm");
}

template <class D, class A>
double squared_norm(const Context& ctx, int64_t n, const A* x) {
  const Tensor sum = ctx.empty(Shape{1}, DType::f64, MemoryTag::workspace);
  squared_norm_to<D, A>(ctx, n, x, sum.data<double>());
  return ctx.download<double>(sum)[0];
}

template void column_sum<Cuda, float>(const Context&, Mat<const float>, float*, bool);
template void column_sum<Cuda, bf16>(const Context&, Mat<const bf16>, float*, bool);
template void reduce_sum<Cuda, float>(const Context&, int64_t, const float*, float*);
template void squared_norm_to<Cuda, float>(const Context&, int64_t, const float*, double*);
template double squared_norm<Cuda, float>(const Context&, int64_t, const float*);

}  // namespace tactus
