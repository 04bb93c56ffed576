#include "kernels/pointwise.h"

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {
namespace {

constexpr int64_t kBlock = 4096;

/// f(offset_x, offset_y, n) for runs of consecutive values of two matrices of one shape: whole rows, or blocks of the
/// flat array when neither has gaps (a flat buffer is one row and would otherwise run on one thread).
template <class X, class Y, class F>
void for_runs(const Context& ctx, const Mat<X>& x, const Mat<Y>& y, F&& f) {
  if (x.ld == x.cols && y.ld == y.cols) {
    parallel_blocks(ctx, y.rows * y.cols, kBlock, 1, [&](int64_t a, int64_t b) { f(x.ptr + a, y.ptr + a, b - a); });
  } else {
    parallel_for(ctx, y.rows, y.cols, [&](int64_t r) { f(x.row(r), y.row(r), y.cols); });
  }
}

}  // namespace

template <class D, class T>
void axpby(const Context& ctx, double alpha, Mat<const T> x, double beta, Mat<T> y) {
  check_shape("axpby", "x", x, y.rows, y.cols);
  check_shape("axpby", "y", y, y.rows, y.cols);
  const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
  for_runs(ctx, x, y, [&](const T* in, T* out, int64_t n) {
    if (b == T(0)) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = a * in[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = a * in[i] + b * out[i];
    }
  });
}

template <class D, class T, class U>
void cast(const Context& ctx, int64_t n, const T* x, U* y) {
  check_value(n >= 0, "cast", "n", "not negative", n);
  parallel_blocks(ctx, n, kBlock, 1, [&](int64_t a, int64_t b) {
#pragma omp simd
    for (int64_t i = a; i < b; ++i) y[i] = static_cast<U>(x[i]);
  });
}

template <class D, class T>
void relu_forward(const Context& ctx, Mat<const T> x, Mat<T> y) {
  check_shape("relu_forward", "x", x, y.rows, y.cols);
  check_shape("relu_forward", "y", y, y.rows, y.cols);
  for_runs(ctx, x, y, [](const T* in, T* out, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] < 0 ? T(0) : in[i];
  });
}

template <class D, class T>
void relu_backward(const Context& ctx, Mat<const T> dy, Mat<const T> y, Mat<T> dx) {
  check_shape("relu_backward", "dy", dy, dx.rows, dx.cols);
  check_shape("relu_backward", "y", y, dx.rows, dx.cols);
  check_shape("relu_backward", "dx", dx, dx.rows, dx.cols);
  parallel_for(ctx, dx.rows, dx.cols, [&](int64_t r) {
    const T *g = dy.row(r), *v = y.row(r);
    T* out = dx.row(r);
#pragma omp simd
    for (int64_t i = 0; i < dx.cols; ++i) out[i] = v[i] <= 0 ? T(0) : g[i];
  });
}

template <class D, class T>
void glu_forward(const Context& ctx, Mat<const T> x, Mat<T> y) {
  check_shape("glu_forward", "x", x, y.rows, 2 * y.cols);
  check_shape("glu_forward", "y", y, y.rows, y.cols);
  const int64_t c = y.cols;
  parallel_for(ctx, y.rows, 16 * c, [&](int64_t r) {
    const T* in = x.row(r);
    T* out = y.row(r);
#pragma omp simd
    for (int64_t i = 0; i < c; ++i) out[i] = in[i] * sigmoid(in[c + i]);
  });
}

template <class D, class T>
void glu_backward(const Context& ctx, Mat<const T> dy, Mat<const T> x, Mat<T> dx) {
  check_shape("glu_backward", "x", x, dy.rows, 2 * dy.cols);
  check_shape("glu_backward", "dx", dx, dy.rows, 2 * dy.cols);
  check_shape("glu_backward", "dy", dy, dy.rows, dy.cols);
  const int64_t c = dy.cols;
  parallel_for(ctx, dy.rows, 20 * c, [&](int64_t r) {
    const T *in = x.row(r), *g = dy.row(r);
    T* out = dx.row(r);
#pragma omp simd
    for (int64_t i = 0; i < c; ++i) {
      const T gate = sigmoid(in[c + i]), linear = in[i], grad = g[i];
      out[i] = grad * gate;
      out[c + i] = grad * linear * gate * (T(1) - gate);
    }
  });
}

template <class D, class T>
void scale_add_table(const Context& ctx, Mat<const T> x, double scale, const acc_t<T>* table, SegmentsView segments,
                     Mat<T> y) {
  check_shape("scale_add_table", "x", x, segments.rows, y.cols);
  check_shape("scale_add_table", "y", y, segments.rows, y.cols);
  const T s = static_cast<T>(scale);
  parallel_for(ctx, y.rows, y.cols, [&](int64_t r) {
    const T* in = x.row(r);
    const T* code = table + (r - segments.offsets[segments.row_segment[r]]) * y.cols;
    T* out = y.row(r);
#pragma omp simd
    for (int64_t i = 0; i < y.cols; ++i) out[i] = s * in[i] + code[i];
  });
}

template <class D, class T>
void gather_rows(const Context& ctx, Mat<const T> x, const int32_t* index, Mat<T> y) {
  check_shape("gather_rows", "x", x, x.rows, y.cols);
  check_shape("gather_rows", "y", y, y.rows, y.cols);
  for (int64_t r = 0; r < y.rows; ++r) {
    check_value(index[r] >= -1 && index[r] < x.rows, "gather_rows", "index", "-1 or a row of x", index[r]);
  }
  parallel_for(ctx, y.rows, y.cols, [&](int64_t r) {
    if (index[r] < 0) {
      std::fill_n(y.row(r), y.cols, T(0));
    } else {
      std::copy_n(x.row(index[r]), y.cols, y.row(r));
    }
  });
}

#define TACTUS_INSTANTIATE(T)                                                                                  \
  template void axpby<Cpu, T>(const Context&, double, Mat<const T>, double, Mat<T>);                           \
  template void relu_forward<Cpu, T>(const Context&, Mat<const T>, Mat<T>);                                    \
  template void relu_backward<Cpu, T>(const Context&, Mat<const T>, Mat<const T>, Mat<T>);                     \
  template void glu_forward<Cpu, T>(const Context&, Mat<const T>, Mat<T>);                                     \
  template void glu_backward<Cpu, T>(const Context&, Mat<const T>, Mat<const T>, Mat<T>);                      \
  template void scale_add_table<Cpu, T>(const Context&, Mat<const T>, double, const T*, SegmentsView, Mat<T>); \
  template void gather_rows<Cpu, T>(const Context&, Mat<const T>, const int32_t*, Mat<T>);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE
template void cast<Cpu, double, double>(const Context&, int64_t, const double*, double*);
template void cast<Cpu, double, float>(const Context&, int64_t, const double*, float*);
template void cast<Cpu, float, double>(const Context&, int64_t, const float*, double*);
template void cast<Cpu, float, float>(const Context&, int64_t, const float*, float*);

}  // namespace tactus
