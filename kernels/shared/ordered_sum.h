// Sums over rows whose order does not depend on the thread count: rows are cut into blocks of fixed size, each block
// has a partial sum of its own, and partial sums are added in block order.
#pragma once

#include "kernels/shared/cpu_parallel.h"

namespace tactus {

template <class T>
class BlockSums {
 public:
  BlockSums(const Context& ctx, int64_t rows, int64_t block, int64_t width)
      : count_((rows + block - 1) / block),
        width_(width),
        partial_(ctx.zeros({count_, width}, dtype_of<T>(), MemoryTag::workspace)) {}
  /// Partial sums of block b, zero at first.
  T* block(int64_t b) const { return partial_.template data<T>() + b * width_; }
  /// out[i] += total of column first + i, for i in [0, n).
  void add_to(const Context& ctx, int64_t first, int64_t n, T* out) const {
    parallel_blocks(ctx, n, 256, count_, [&](int64_t begin, int64_t end) {
      for (int64_t b = 0; b < count_; ++b) {
        const T* part = block(b) + first;
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) out[i] += part[i];
      }
    });
  }

 private:
  int64_t count_, width_;
  Tensor partial_;
};

}  // namespace tactus
