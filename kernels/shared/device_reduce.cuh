// Second pass of column sums: partial sums [parts, width] are added in an order that depends on the shape alone.
#pragma once

#include "kernels/shared/device_rows.cuh"

namespace tactus::device {

constexpr int kPartLanes = 8;

/// Columns below `split` go to first[c], the others to second[c - split].
static __global__ void __launch_bounds__(kWarp* kPartLanes)
    finish_columns_kernel(const float* partial, int64_t parts, int64_t width, int64_t split, float* first,
                          float* second, bool accumulate) {
  __shared__ float sums[kPartLanes][kWarp];
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum = 0;
  if (c < width) {
    for (int64_t p = threadIdx.y; p < parts; p += kPartLanes) sum += partial[p * width + c];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= width) return;
  for (int i = 1; i < kPartLanes; ++i) sum += sums[i][threadIdx.x];
  float* out = c < split ? first + c : second + (c - split);
  *out = accumulate ? *out + sum : sum;
}

inline void finish_columns(const Context& ctx, const float* partial, int64_t parts, int64_t width, int64_t split,
                           float* first, float* second, bool accumulate) {
  if (width <= 0) return;
  finish_columns_kernel<<<row_grid(ceil_div(width, kWarp)), dim3(kWarp, kPartLanes), 0, stream_of(ctx)>>>(
      partial, parts, width, split, first, second, accumulate);
  cuda_check_launch("finish_columns");
}

}  // namespace tactus::device
