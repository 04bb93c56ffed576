// CUDA token embedding. The gradient of a token's row is summed by one block over the token's run of rows: no atomics.
#include "kernels/embedding.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kRunLanes = 8;  // threads that share a run of rows; a frequent token has thousands

template <class T>
struct Lookup {
  Mat<const T> table;
  const int32_t* ids;
  float scale;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float v[kGroup];
    load_group(table.row(ids[r]) + c, n, wide, v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] *= scale;
    store_group(y.row(r) + c, n, wide, v);
  }
};

/// Block (token, column tile): lane y takes every eighth row of the run, the lanes are added in order.
template <class T>
__global__ void __launch_bounds__(kWarp* kRunLanes)
    backward_kernel(Mat<const T> dy, const int32_t* ids, const int32_t* order, const int32_t* starts, float scale,
                    Mat<float> dtable, bool wide, bool wide_table) {
  __shared__ float sums[kRunLanes][kWarp][kGroup + 1];
  const int64_t c = (static_cast<int64_t>(blockIdx.y) * kWarp + threadIdx.x) * kGroup;
  const int n = static_cast<int>(c >= dy.cols ? 0 : dy.cols - c < kGroup ? dy.cols - c : kGroup);
  const int32_t begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
  float sum[kGroup] = {};
  if (n > 0) {
    for (int32_t i = begin + static_cast<int32_t>(threadIdx.y); i < end; i += kRunLanes) {
      float v[kGroup];
      load_group(dy.row(order[i]) + c, n, wide, v);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sum[j] += v[j];
    }
  }
#pragma unroll
  for (int j = 0; j < kGroup; ++j) sums[threadIdx.y][threadIdx.x][j] = sum[j];
  __syncthreads();
  if (threadIdx.y != 0 || n == 0 || begin == end) return;
  for (int y = 1; y < kRunLanes; ++y) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sum[j] += sums[y][threadIdx.x][j];
  }
  float* out = dtable.row(ids[order[begin]]) + c;
  float old[kGroup];
  load_group(static_cast<const float*>(out), n, wide_table, old);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) old[j] += scale * sum[j];
  store_group(out, n, wide_table, old);
}

}  // namespace

template <class D, class T>
void embedding_forward(const Context& ctx, Mat<const T> table, const TokenIndex& tokens, double scale, Mat<T> y) {
  check_shape("embedding_forward", "y", y, tokens.rows, table.cols);
  if (tokens.rows == 0) return;
  const Lookup<T> f{table, tokens.ids.data<const int32_t>(), static_cast<float>(scale), y,
                    wide_rows(table) && wide_rows(y)};
  for_each_group(ctx, y.rows, y.cols, f, "embedding_forward");
}

template <class D, class T>
void embedding_backward(const Context& ctx, Mat<const T> dy, const TokenIndex& tokens, double scale,
                        Mat<acc_t<T>> dtable) {
  check_shape("embedding_backward", "dy", dy, tokens.rows, dtable.cols);
  if (tokens.unique == 0 || dtable.cols == 0) return;
  const dim3 grid(row_grid(tokens.unique), static_cast<unsigned>(ceil_div(dy.cols, kWarp * kGroup)));
  backward_kernel<T><<<grid, dim3(kWarp, kRunLanes), 0, stream_of(ctx)>>>(
      dy, tokens.ids.data<const int32_t>(), tokens.order.data<const int32_t>(), tokens.starts.data<const int32_t>(),
      static_cast<float>(scale), dtable, wide_rows(dy), wide_rows(dtable));
  cuda_check_launch("embedding_backward");
}

#define TACTUS_INSTANTIATE(T)                                                                                \
  template void embedding_forward<Cuda, T>(const Context&, Mat<const T>, const TokenIndex&, double, Mat<T>); \
  template void embedding_backward<Cuda, T>(const Context&, Mat<const T>, const TokenIndex&, double, Mat<float>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
