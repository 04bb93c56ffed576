// CUDA dropout: one draw of the generator serves the eight decisions of a thread's group of columns.
#include "kernels/dropout.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

/// The keep bits of columns c .. c+7 of packed row r; everything is kept when dropout is off (segments may then be
/// empty).
struct Decisions {
  DropoutKey key;
  SegmentsView segments;
  __device__ uint32_t keep(int64_t r, int64_t c) const {
    if (!key.active()) return 0xffu;
    const int32_t segment = segments.row_segment[r];
    const uint32_t row = static_cast<uint32_t>(r - segments.offsets[segment]);
    return keep_bits(key, static_cast<uint32_t>(segments.utterance[segment]), row, 0,
                     static_cast<uint32_t>(c / kGroup));
  }
};

template <class T>
struct DropoutAdd {
  Mat<const T> x, residual;
  Decisions decisions;
  float scale;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float v[kGroup];
    load_group(x.row(r) + c, n, wide, v);
    const uint32_t keep = decisions.keep(r, c);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] = keep >> i & 1 ? v[i] * scale : 0.0f;
    if (residual.ptr) {
      float add[kGroup];
      load_group(residual.row(r) + c, n, wide, add);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) v[i] += add[i];
    }
    store_group(y.row(r) + c, n, wide, v);
  }
};

template <class T>
struct ReluDropoutForward {
  Mat<const T> x;
  Decisions decisions;
  float scale;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float v[kGroup];
    load_group(x.row(r) + c, n, wide, v);
    const uint32_t keep = decisions.keep(r, c);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] = keep >> i & 1 ? relu(v[i]) * scale : 0.0f;
    store_group(y.row(r) + c, n, wide, v);
  }
};

template <class T>
struct ReluDropoutBackward {
  Mat<const T> dy, y;
  float scale;
  Mat<T> dx;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float g[kGroup], v[kGroup];
    load_group(dy.row(r) + c, n, wide, g);
    load_group(y.row(r) + c, n, wide, v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) g[i] = v[i] <= 0.0f ? 0.0f : g[i] * scale;  // a NaN output passes its gradient on
    store_group(dx.row(r) + c, n, wide, g);
  }
};

float scale_of(const DropoutKey& key) { return key.active() ? key.scale() : 1.0f; }

void check_segments(const char* op, const DropoutKey& key, const SegmentsView& segments, int64_t rows) {
  if (key.active())
    check_value(segments.rows == rows, op, "segments.rows", std::to_string(rows).c_str(), segments.rows);
}

}  // namespace

template <class D, class T>
void dropout_add(const Context& ctx, Mat<const T> x, Mat<const T> residual, DropoutKey key, SegmentsView segments,
                 Mat<T> y) {
  check_shape("dropout_add", "x", x, y.rows, y.cols);
  check_shape("dropout_add", "y", y, y.rows, y.cols);
  if (residual.ptr) check_shape("dropout_add", "residual", residual, y.rows, y.cols);
  check_segments("dropout_add", key, segments, y.rows);
  const bool wide = wide_rows(x) && wide_rows(y) && (!residual.ptr || wide_rows(residual));
  for_each_group(ctx, y.rows, y.cols, DropoutAdd<T>{x, residual, {key, segments}, scale_of(key), y, wide},
                 "dropout_add");
}

template <class D, class T>
void relu_dropout_forward(const Context& ctx, Mat<const T> x, DropoutKey key, SegmentsView segments, Mat<T> y) {
  check_shape("relu_dropout_forward", "x", x, y.rows, y.cols);
  check_shape("relu_dropout_forward", "y", y, y.rows, y.cols);
  check_segments("relu_dropout_forward", key, segments, y.rows);
  const ReluDropoutForward<T> f{x, {key, segments}, scale_of(key), y, wide_rows(x) && wide_rows(y)};
  for_each_group(ctx, y.rows, y.cols, f, "relu_dropout_forward");
}

template <class D, class T>
void relu_dropout_backward(const Context& ctx, Mat<const T> dy, Mat<const T> y, DropoutKey key, Mat<T> dx) {
  check_shape("relu_dropout_backward", "dy", dy, dx.rows, dx.cols);
  check_shape("relu_dropout_backward", "y", y, dx.rows, dx.cols);
  check_shape("relu_dropout_backward", "dx", dx, dx.rows, dx.cols);
  const bool wide = wide_rows(dy) && wide_rows(y) && wide_rows(dx);
  for_each_group(ctx, dx.rows, dx.cols, ReluDropoutBackward<T>{dy, y, scale_of(key), dx, wide},
                 "relu_dropout_backward");
}

#define TACTUS_INSTANTIATE(T)                                                                                       \
  template void dropout_add<Cuda, T>(const Context&, Mat<const T>, Mat<const T>, DropoutKey, SegmentsView, Mat<T>); \
  template void relu_dropout_forward<Cuda, T>(const Context&, Mat<const T>, DropoutKey, SegmentsView, Mat<T>);      \
  template void relu_dropout_backward<Cuda, T>(const Context&, Mat<const T>, Mat<const T>, DropoutKey, Mat<T>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
