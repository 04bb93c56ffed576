#include "kernels/reduce.h"

#include <vector>

#include "kernels/shared/check.h"
#include "kernels/shared/ordered_sum.h"

namespace tactus {
namespace {

constexpr int64_t kRowBlock = 128;
constexpr int64_t kFlatBlock = 4096;

/// Sum of f(x[i]) in double: lanes inside a block, then blocks in order.
template <class A, class F>
double flat_sum(const Context& ctx, int64_t n, const A* x, F&& f) {
  std::vector<double> partial((n + kFlatBlock - 1) / kFlatBlock, 0.0);
  parallel_blocks(ctx, n, kFlatBlock, 1, [&](int64_t begin, int64_t end) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += f(static_cast<double>(x[i]));
    partial[begin / kFlatBlock] = sum;
  });
  double total = 0;
  for (double p : partial) total += p;
  return total;
}

}  // namespace

template <class D, class T>
void column_sum(const Context& ctx, Mat<const T> x, acc_t<T>* out, bool accumulate) {
  check_shape("column_sum", "x", x, x.rows, x.cols);
  const int64_t n = x.cols;
  BlockSums<T> sums(ctx, x.rows, kRowBlock, n);
  parallel_blocks(ctx, x.rows, kRowBlock, n, [&](int64_t begin, int64_t end) {
    T* sum = sums.block(begin / kRowBlock);
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x.row(r);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) sum[i] += row[i];
    }
  });
  if (!accumulate) std::fill_n(out, n, T(0));
  sums.add_to(ctx, 0, n, out);
}

template <class D, class A>
void reduce_sum(const Context& ctx, int64_t n, const A* x, A* out) {
  check_value(n >= 0, "reduce_sum", "n", "not negative", n);
  *out = static_cast<A>(flat_sum(ctx, n, x, [](double v) { return v; }));
}

template <class D, class A>
void squared_norm_to(const Context& ctx, int64_t n, const A* x, double* out) {
  check_value(n >= 0, "squared_norm", "n", "not negative", n);
  *out = flat_sum(ctx, n, x, [](double v) { return v * v; });
}

template <class D, class A>
double squared_norm(const Context& ctx, int64_t n, const A* x) {
  double sum = 0;
  squared_norm_to<D, A>(ctx, n, x, &sum);
  return sum;
}

#define TACTUS_INSTANTIATE(T)                                                        \
  template void squared_norm_to<Cpu, T>(const Context&, int64_t, const T*, double*); \
  template void column_sum<Cpu, T>(const Context&, Mat<const T>, T*, bool);          \
  template void reduce_sum<Cpu, T>(const Context&, int64_t, const T*, T*);           \
  template double squared_norm<Cpu, T>(const Context&, int64_t, const T*);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
