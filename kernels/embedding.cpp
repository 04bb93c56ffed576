#include "kernels/embedding.h"

#include <numeric>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {

TokenIndex TokenIndex::make(const Context& ctx, const std::vector<int32_t>& ids, int64_t vocabulary) {
  for (size_t r = 0; r < ids.size(); ++r) {
    if (ids[r] < 0 || ids[r] >= vocabulary) {
      throw DataError("embedding: token id " + std::to_string(ids[r]) + " in row " + std::to_string(r) +
                      " is outside the vocabulary of " + std::to_string(vocabulary) + " tokens");
    }
  }
  std::vector<int32_t> order(ids.size()), starts;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return ids[a] < ids[b]; });
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || ids[order[i]] != ids[order[i - 1]]) starts.push_back(static_cast<int32_t>(i));
  }
  TokenIndex index;
  index.rows = static_cast<int64_t>(ids.size());
  index.unique = static_cast<int64_t>(starts.size());
  starts.push_back(static_cast<int32_t>(ids.size()));
  index.ids = ctx.upload(ids);
  index.order = ctx.upload(order);
  index.starts = ctx.upload(starts);
  return index;
}

template <class D, class T>
void embedding_forward(const Context& ctx, Mat<const T> table, const TokenIndex& tokens, double scale, Mat<T> y) {
  check_shape("embedding_forward", "table", table, table.rows, y.cols);
  check_shape("embedding_forward", "y", y, tokens.rows, y.cols);
  const int32_t* ids = tokens.ids.data<int32_t>();
  const T s = static_cast<T>(scale);
  parallel_for(ctx, y.rows, y.cols, [&](int64_t r) {
    const T* in = table.row(ids[r]);
    T* out = y.row(r);
#pragma omp simd
    for (int64_t i = 0; i < y.cols; ++i) out[i] = s * in[i];
  });
}

template <class D, class T>
void embedding_backward(const Context& ctx, Mat<const T> dy, const TokenIndex& tokens, double scale,
                        Mat<acc_t<T>> dtable) {
  check_shape("embedding_backward", "dy", dy, tokens.rows, dtable.cols);
  check_shape("embedding_backward", "dtable", dtable, dtable.rows, dtable.cols);
  const int32_t *ids = tokens.ids.data<int32_t>(), *order = tokens.order.data<int32_t>();
  const int32_t* starts = tokens.starts.data<int32_t>();
  const T s = static_cast<T>(scale);
  constexpr int64_t kColumns = 256;
  parallel_tasks(ctx, tokens.unique, tokens.rows * dtable.cols, [&](int64_t u) {
    T* out = dtable.row(ids[order[starts[u]]]);
    for (int64_t c = 0; c < dtable.cols; c += kColumns) {
      const int64_t n = std::min(kColumns, dtable.cols - c);
      T sum[kColumns] = {};
      for (int32_t i = starts[u]; i < starts[u + 1]; ++i) add_scaled(T(1), dy.row(order[i]) + c, sum, n);
      add_scaled(s, sum, out + c, n);
    }
  });
}

#define TACTUS_INSTANTIATE(T)                                                                               \
  template void embedding_forward<Cpu, T>(const Context&, Mat<const T>, const TokenIndex&, double, Mat<T>); \
  template void embedding_backward<Cpu, T>(const Context&, Mat<const T>, const TokenIndex&, double, Mat<T>);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
