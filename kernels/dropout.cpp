#include "kernels/dropout.h"

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_parallel.h"
#include "kernels/shared/dropout_draws.h"

namespace tactus {
namespace {

constexpr int64_t kGroups = 64;  // column groups whose draws are made at a time; they stay in the first-level cache
constexpr int64_t kDropoutWork = 8;

/// f(row, column, n, draws) for every run of at most 8 kGroups columns of every row.
template <class F>
void for_draws(const Context& ctx, DropoutKey key, const SegmentsView& segments, int64_t cols, F&& f) {
  parallel_for(ctx, segments.rows, kDropoutWork * cols, [&](int64_t r) {
    uint16_t draws[8 * kGroups];
    const int32_t segment = segments.row_segment[r];
    const uint32_t row = static_cast<uint32_t>(r - segments.offsets[segment]);
    for (int64_t c = 0; c < cols; c += 8 * kGroups) {
      const int64_t n = std::min(8 * kGroups, cols - c);
      dropout_draws(key, segments.utterance[segment], row, 1, 0, static_cast<uint32_t>(c / 8), (n + 7) / 8, draws);
      f(r, c, n, draws);
    }
  });
}

}  // namespace

template <class D, class T>
void dropout_add(const Context& ctx, Mat<const T> x, Mat<const T> residual, DropoutKey key, SegmentsView segments,
                 Mat<T> y) {
  check_shape("dropout_add", "x", x, y.rows, y.cols);
  check_shape("dropout_add", "y", y, y.rows, y.cols);
  if (residual.ptr) check_shape("dropout_add", "residual", residual, y.rows, y.cols);
  if (!key.active()) {
    parallel_for(ctx, y.rows, y.cols, [&](int64_t r) {
      const T *in = x.row(r), *add = residual.ptr ? residual.row(r) : nullptr;
      T* out = y.row(r);
#pragma omp simd
      for (int64_t i = 0; i < y.cols; ++i) out[i] = add ? in[i] + add[i] : in[i];
    });
    return;
  }
  check_shape("dropout_add", "y", y, segments.rows, y.cols);
  const uint32_t threshold = key.threshold();
  const T scale = static_cast<T>(key.scale());
  for_draws(ctx, key, segments, y.cols, [&](int64_t r, int64_t c, int64_t n, const uint16_t* draws) {
    const T *in = x.row(r) + c, *add = residual.ptr ? residual.row(r) + c : nullptr;
    T* out = y.row(r) + c;
    const T factor = scale;
    const uint32_t limit = threshold;
    if (add) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = keep_if(draws[i] >= limit, in[i] * factor) + add[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = keep_if(draws[i] >= limit, in[i] * factor);
    }
  });
}

template <class D, class T>
void relu_dropout_forward(const Context& ctx, Mat<const T> x, DropoutKey key, SegmentsView segments, Mat<T> y) {
  check_shape("relu_dropout_forward", "x", x, y.rows, y.cols);
  check_shape("relu_dropout_forward", "y", y, y.rows, y.cols);
  if (!key.active()) {
    parallel_for(ctx, y.rows, y.cols, [&](int64_t r) {
      const T* in = x.row(r);
      T* out = y.row(r);
#pragma omp simd
      for (int64_t i = 0; i < y.cols; ++i) out[i] = in[i] < 0 ? T(0) : in[i];
    });
    return;
  }
  check_shape("relu_dropout_forward", "y", y, segments.rows, y.cols);
  const uint32_t threshold = key.threshold();
  const T scale = static_cast<T>(key.scale());
  for_draws(ctx, key, segments, y.cols, [&](int64_t r, int64_t c, int64_t n, const uint16_t* draws) {
    const T* in = x.row(r) + c;
    T* out = y.row(r) + c;
    const T factor = scale;  // locals, for the same reason as in backward
    const uint32_t limit = threshold;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T scaled = in[i] * factor;
      out[i] = keep_if(draws[i] >= limit, in[i] < 0 ? T(0) : scaled);
    }
  });
}

template <class D, class T>
void relu_dropout_backward(const Context& ctx, Mat<const T> dy, Mat<const T> y, DropoutKey key, Mat<T> dx) {
  check_shape("relu_dropout_backward", "dy", dy, dx.rows, dx.cols);
  check_shape("relu_dropout_backward", "y", y, dx.rows, dx.cols);
  check_shape("relu_dropout_backward", "dx", dx, dx.rows, dx.cols);
  const T scale = key.active() ? static_cast<T>(key.scale()) : T(1);
  parallel_for(ctx, dx.rows, dx.cols, [&](int64_t r) {
    const T *g = dy.row(r), *v = y.row(r);
    T* out = dx.row(r);
    const T factor = scale;  // a local: the compiler cannot know that `out` does not change the captured one
    // Written so that a NaN output passes its gradient on, and without a conditional load, so that it is vectorised.
#pragma omp simd
    for (int64_t i = 0; i < dx.cols; ++i) {
      const T scaled = g[i] * factor;
      out[i] = v[i] <= 0 ? T(0) : scaled;
    }
  });
}

#define TACTUS_INSTANTIATE(T)                                                                                      \
  template void dropout_add<Cpu, T>(const Context&, Mat<const T>, Mat<const T>, DropoutKey, SegmentsView, Mat<T>); \
  template void relu_dropout_forward<Cpu, T>(const Context&, Mat<const T>, DropoutKey, SegmentsView, Mat<T>);      \
  template void relu_dropout_backward<Cpu, T>(const Context&, Mat<const T>, Mat<const T>, DropoutKey, Mat<T>);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
