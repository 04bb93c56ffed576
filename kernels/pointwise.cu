// CUDA elementwise operations: memory-bound, one thread per group of eight columns, arithmetic in f32.
#include "kernels/pointwise.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

template <class T>
struct Axpby {
  float alpha, beta;
  Mat<const T> x;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float a[kGroup], b[kGroup];
    load_group(x.row(r) + c, n, wide, a);
    if (beta == 0.0f) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) a[i] *= alpha;
    } else {
      load_group(static_cast<const T*>(y.row(r) + c), n, wide, b);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) a[i] = alpha * a[i] + beta * b[i];
    }
    store_group(y.row(r) + c, n, wide, a);
  }
};

template <class T, class U>
struct Cast {
  const T* x;
  U* y;
  bool wide;
  __device__ void operator()(int64_t, int64_t c, int n) const {
    float v[kGroup];
    load_group(x + c, n, wide, v);
    store_group(y + c, n, wide, v);
  }
};

template <class T>
struct ReluForward {
  Mat<const T> x;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float v[kGroup];
    load_group(x.row(r) + c, n, wide, v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] = relu(v[i]);
    store_group(y.row(r) + c, n, wide, v);
  }
};

template <class T>
struct ReluBackward {
  Mat<const T> dy, y;
  Mat<T> dx;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float g[kGroup], v[kGroup];
    load_group(dy.row(r) + c, n, wide, g);
    load_group(y.row(r) + c, n, wide, v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) g[i] = v[i] <= 0.0f ? 0.0f : g[i];
    store_group(dx.row(r) + c, n, wide, g);
  }
};

template <class T>
struct GluForward {
  Mat<const T> linear, gate;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float a[kGroup], b[kGroup];
    load_group(linear.row(r) + c, n, wide, a);
    load_group(gate.row(r) + c, n, wide, b);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) a[i] *= sigmoid(b[i]);
    store_group(y.row(r) + c, n, wide, a);
  }
};

template <class T>
struct GluBackward {
  Mat<const T> dy, linear, gate;
  Mat<T> dlinear, dgate;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float g[kGroup], a[kGroup], b[kGroup];
    load_group(dy.row(r) + c, n, wide, g);
    load_group(linear.row(r) + c, n, wide, a);
    load_group(gate.row(r) + c, n, wide, b);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float s = sigmoid(b[i]);
      b[i] = g[i] * a[i] * s * (1.0f - s);
      a[i] = g[i] * s;
    }
    store_group(dlinear.row(r) + c, n, wide, a);
    store_group(dgate.row(r) + c, n, wide, b);
  }
};

template <class T>
struct ScaleAddTable {
  Mat<const T> x;
  float scale;
  const float* table;
  SegmentsView segments;
  Mat<T> y;
  bool wide, wide_table;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    const int64_t position = r - segments.offsets[segments.row_segment[r]];
    float v[kGroup], code[kGroup];
    load_group(x.row(r) + c, n, wide, v);
    load_group(table + position * y.cols + c, n, wide_table, code);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] = scale * v[i] + code[i];
    store_group(y.row(r) + c, n, wide, v);
  }
};

template <class T>
struct GatherRows {
  Mat<const T> x;
  const int32_t* index;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    const int32_t from = index[r];
    float v[kGroup] = {};
    if (from >= 0) load_group(x.row(from) + c, n, wide, v);
    store_group(y.row(r) + c, n, wide, v);
  }
};

}  // namespace

template <class D, class T>
void axpby(const Context& ctx, double alpha, Mat<const T> x, double beta, Mat<T> y) {
  check_shape("axpby", "x", x, y.rows, y.cols);
  check_shape("axpby", "y", y, y.rows, y.cols);
  const Axpby<T> f{static_cast<float>(alpha), static_cast<float>(beta), x, y, wide_rows(x) && wide_rows(y)};
  for_each_group(ctx, y.rows, y.cols, f, "axpby");
}

template <class D, class T, class U>
void cast(const Context& ctx, int64_t n, const T* x, U* y) {
  check_value(n >= 0, "cast", "n", "not negative", n);
  for_each_group(ctx, 1, n, Cast<T, U>{x, y, wide_pointer(x) && wide_pointer(y)}, "cast");
}

template <class D, class T>
void relu_forward(const Context& ctx, Mat<const T> x, Mat<T> y) {
  check_shape("relu_forward", "x", x, y.rows, y.cols);
  check_shape("relu_forward", "y", y, y.rows, y.cols);
  for_each_group(ctx, y.rows, y.cols, ReluForward<T>{x, y, wide_rows(x) && wide_rows(y)}, "relu_forward");
}

template <class D, class T>
void relu_backward(const Context& ctx, Mat<const T> dy, Mat<const T> y, Mat<T> dx) {
  check_shape("relu_backward", "dy", dy, dx.rows, dx.cols);
  check_shape("relu_backward", "y", y, dx.rows, dx.cols);
  check_shape("relu_backward", "dx", dx, dx.rows, dx.cols);
  const bool wide = wide_rows(dy) && wide_rows(y) && wide_rows(dx);
  for_each_group(ctx, dx.rows, dx.cols, ReluBackward<T>{dy, y, dx, wide}, "relu_backward");
}

template <class D, class T>
void glu_forward(const Context& ctx, Mat<const T> x, Mat<T> y) {
  check_shape("glu_forward", "x", x, y.rows, 2 * y.cols);
  check_shape("glu_forward", "y", y, y.rows, y.cols);
  const Mat<const T> linear = x.columns(0, y.cols), gate = x.columns(y.cols, 2 * y.cols);
  const bool wide = wide_rows(linear) && wide_rows(gate) && wide_rows(y);
  for_each_group(ctx, y.rows, y.cols, GluForward<T>{linear, gate, y, wide}, "glu_forward");
}

template <class D, class T>
void glu_backward(const Context& ctx, Mat<const T> dy, Mat<const T> x, Mat<T> dx) {
  check_shape("glu_backward", "x", x, dy.rows, 2 * dy.cols);
  check_shape("glu_backward", "dx", dx, dy.rows, 2 * dy.cols);
  check_shape("glu_backward", "dy", dy, dy.rows, dy.cols);
  const int64_t c = dy.cols;
  const GluBackward<T> f{
      dy,
      x.columns(0, c),
      x.columns(c, 2 * c),
      dx.columns(0, c),
      dx.columns(c, 2 * c),
      wide_rows(dy) && wide_rows(x) && wide_rows(dx) && wide_pointer(x.ptr + c) && wide_pointer(dx.ptr + c)};
  for_each_group(ctx, dy.rows, c, f, "glu_backward");
}

template <class D, class T>
void scale_add_table(const Context& ctx, Mat<const T> x, double scale, const acc_t<T>* table, SegmentsView segments,
                     Mat<T> y) {
  check_shape("scale_add_table", "x", x, segments.rows, y.cols);
  check_shape("scale_add_table", "y", y, segments.rows, y.cols);
  const bool wide_table = wide_pointer(table) && y.cols % 4 == 0;
  const ScaleAddTable<T> f{x, static_cast<float>(scale), table, segments, y, wide_rows(x) && wide_rows(y), wide_table};
  for_each_group(ctx, y.rows, y.cols, f, "scale_add_table");
}

template <class D, class T>
void gather_rows(const Context& ctx, Mat<const T> x, const int32_t* index, Mat<T> y) {
  check_shape("gather_rows", "x", x, x.rows, y.cols);
  check_shape("gather_rows", "y", y, y.rows, y.cols);
  for_each_group(ctx, y.rows, y.cols, GatherRows<T>{x, index, y, wide_rows(x) && wide_rows(y)}, "gather_rows");
}

#define TACTUS_INSTANTIATE(T)                                                                                       \
  template void axpby<Cuda, T>(const Context&, double, Mat<const T>, double, Mat<T>);                               \
  template void relu_forward<Cuda, T>(const Context&, Mat<const T>, Mat<T>);                                        \
  template void relu_backward<Cuda, T>(const Context&, Mat<const T>, Mat<const T>, Mat<T>);                         \
  template void glu_forward<Cuda, T>(const Context&, Mat<const T>, Mat<T>);                                         \
  template void glu_backward<Cuda, T>(const Context&, Mat<const T>, Mat<const T>, Mat<T>);                          \
  template void scale_add_table<Cuda, T>(const Context&, Mat<const T>, double, const float*, SegmentsView, Mat<T>); \
  template void gather_rows<Cuda, T>(const Context&, Mat<const T>, const int32_t*, Mat<T>);                         \
  template void cast<Cuda, T, float>(const Context&, int64_t, const T*, float*);                                    \
  template void cast<Cuda, T, bf16>(const Context&, int64_t, const T*, bf16*);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
