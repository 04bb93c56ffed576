// Launch of row-wise work: a functor f(row, column, n) is called for each group of n <= 8 consecutive columns, by one
// thread.
#pragma once

#include <algorithm>

#include "core/cuda.h"
#include "kernels/shared/device_math.cuh"

namespace tactus::device {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// True when groups of eight columns of every row may be moved by 16-byte accesses.
template <class T>
bool wide_rows(const Mat<T>& m) {
  return reinterpret_cast<uintptr_t>(m.ptr) % 16 == 0 &&
         (m.rows <= 1 || m.ld * static_cast<int64_t>(sizeof(T)) % 16 == 0);
}
inline bool wide_pointer(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

template <class F>
__global__ void __launch_bounds__(256) row_groups_kernel(int64_t rows, int64_t cols, F f) {
  const int64_t column_step = static_cast<int64_t>(gridDim.y) * blockDim.x * kGroup;
  const int64_t row_step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  int64_t c = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kGroup;
  for (; c < cols; c += column_step) {
    const int n = static_cast<int>(cols - c < kGroup ? cols - c : kGroup);
    for (int64_t r = first_row; r < rows; r += row_step) f(r, c, n);
  }
}

template <class F>
void for_each_group(const Context& ctx, int64_t rows, int64_t cols, const F& f, const char* name) {
  if (rows <= 0 || cols <= 0) return;
  const int64_t groups = ceil_div(cols, kGroup);
  // A warp along one row where the row is long enough; more lanes along the row only where rows are too few.
  int lanes = 1;
  while (lanes < 256 && lanes < groups && (lanes < kWarp || 256 / lanes > rows)) lanes *= 2;
  const dim3 block(lanes, 256 / lanes);
  const dim3 grid(static_cast<unsigned>(std::min<int64_t>(ceil_div(rows, block.y), 1 << 20)),
                  static_cast<unsigned>(std::min<int64_t>(ceil_div(groups, lanes), 65535)));
  row_groups_kernel<<<grid, block, 0, stream_of(ctx)>>>(rows, cols, f);
  cuda_check_launch(name);
}

/// Grid of one block per row, rows beyond the limit of a grid being an error of the caller.
inline unsigned row_grid(int64_t rows) {
  if (rows > 0x7fffffff)
    throw ShapeError("a kernel was given " + std::to_string(rows) + " rows; the limit is 2147483647");
  return static_cast<unsigned>(rows);
}

}  // namespace tactus::device
