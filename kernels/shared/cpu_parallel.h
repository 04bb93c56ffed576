// Threads for CPU kernels. Work is cut into items or blocks whose results do not depend on which thread runs them.
#pragma once

#include <algorithm>

#include "core/context.h"

namespace tactus {

/// Below this many elementary operations waking a thread costs more than it saves.
constexpr int64_t kSerialWork = 1 << 15;

inline int threads_for(const Context& ctx, int64_t items, int64_t work) {
  return work < kSerialWork ? 1 : static_cast<int>(std::min<int64_t>(ctx.threads(), items));
}

/// f(i) for i in [0, n), equal shares; `work` is the number of elementary operations of one item.
template <class F>
void parallel_for(const Context& ctx, int64_t n, int64_t work, F&& f) {
  const int threads = threads_for(ctx, n, n * work);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t i = 0; i < n; ++i) f(i);
}

/// As parallel_for, for items of unequal cost: threads take them one by one.
template <class F>
void parallel_tasks(const Context& ctx, int64_t n, int64_t total_work, F&& f) {
  const int threads = threads_for(ctx, n, total_work);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1)
  for (int64_t i = 0; i < n; ++i) f(i);
}

/// f(begin, end) over [0, n) in blocks of fixed size.
template <class F>
void parallel_blocks(const Context& ctx, int64_t n, int64_t block, int64_t work, F&& f) {
  parallel_for(ctx, (n + block - 1) / block, block * work,
               [&](int64_t b) { f(b * block, std::min(n, (b + 1) * block)); });
}

}  // namespace tactus
