// CUDA weighted sum of layers: memory-bound. The gradient of a weight is a sum over all rows, in two passes.
#include <algorithm>

#include "kernels/layer_mix.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_reduce.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kThreads = 256;
constexpr int64_t kMaxParts = 512;

/// One warp; layers are few.
template <class T>
__global__ void weights_kernel(int64_t layers, const T* a, float* w) {
  float top = -INFINITY, sum = 0;
  for (int64_t l = 0; l < layers; ++l) top = fmaxf(top, to_float(a[l]));
  // fmaxf passes over NaN; the sum does not.
  for (int64_t l = 0; l < layers; ++l) sum += expf(to_float(a[l]) - top);
  for (int64_t l = threadIdx.x; l < layers; l += kWarp) w[l] = expf(to_float(a[l]) - top) / sum;
}

template <class T>
struct Mix {
  Mat<const T> x;
  int64_t layers;
  const float* w;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float sum[kGroup] = {};
    for (int64_t l = 0; l < layers; ++l) {
      float v[kGroup];
      load_group(x.row(r) + l * y.cols + c, n, wide, v);
      const float weight = w[l];
#pragma unroll
      for (int i = 0; i < kGroup; ++i) sum[i] += weight * v[i];
    }
    store_group(y.row(r) + c, n, wide, sum);
  }
};

template <class T>
struct Spread {
  Mat<const T> dy;
  int64_t layers;
  const float* w;
  Mat<T> dx;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float g[kGroup], v[kGroup];
    load_group(dy.row(r) + c, n, wide, g);
    for (int64_t l = 0; l < layers; ++l) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) v[i] = w[l] * g[i];
      store_group(dx.row(r) + l * dy.cols + c, n, wide, v);
    }
  }
};

/// Block (part, layer): its share of the rows.
template <class T>
__global__ void __launch_bounds__(kThreads)
    products_kernel(Mat<const T> dy, Mat<const T> x, int64_t rows_per_part, float* partial) {
  __shared__ float scratch[kWarp];
  const int64_t layer = blockIdx.y, layers = gridDim.y;
  const int64_t begin = blockIdx.x * rows_per_part;
  const int64_t end = begin + rows_per_part < dy.rows ? begin + rows_per_part : dy.rows;
  float sum = 0;
  for (int64_t r = begin; r < end; ++r) {
    const T *g = dy.row(r), *v = x.row(r) + layer * dy.cols;
    for (int64_t c = threadIdx.x; c < dy.cols; c += kThreads) sum += to_float(g[c]) * to_float(v[c]);
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x * layers + layer] = sum;
}

/// One warp.
__global__ void softmax_backward_kernel(int64_t layers, const float* w, const float* g, float* da) {
  float mean = 0;
  for (int64_t l = 0; l < layers; ++l) mean += w[l] * g[l];
  for (int64_t l = threadIdx.x; l < layers; l += kWarp) da[l] += w[l] * (g[l] - mean);
}

template <class T>
bool wide_layers(const Mat<T>& m, int64_t width) {
  return wide_rows(m) && width % kGroup == 0;
}

}  // namespace

template <class D, class T>
void layer_mix_weights(const Context& ctx, int64_t layers, const T* a, acc_t<T>* w) {
  weights_kernel<T><<<1, kWarp, 0, stream_of(ctx)>>>(layers, a, w);
  cuda_check_launch("layer_mix_weights");
}

template <class D, class T>
void layer_mix_forward(const Context& ctx, Mat<const T> x, int64_t layers, const acc_t<T>* w, Mat<T> y) {
  check_shape("layer_mix_forward", "x", x, y.rows, layers * y.cols);
  const Mix<T> f{x, layers, w, y, wide_layers(x, y.cols) && wide_rows(y)};
  for_each_group(ctx, y.rows, y.cols, f, "layer_mix_forward");
}

template <class D, class T>
void layer_mix_backward_x(const Context& ctx, Mat<const T> dy, int64_t layers, const acc_t<T>* w, Mat<T> dx) {
  check_shape("layer_mix_backward_x", "dx", dx, dy.rows, layers * dy.cols);
  const Spread<T> f{dy, layers, w, dx, wide_layers(dx, dy.cols) && wide_rows(dy)};
  for_each_group(ctx, dy.rows, dy.cols, f, "layer_mix_backward_x");
}

template <class D, class T>
void layer_mix_backward_weights(const Context& ctx, Mat<const T> dy, Mat<const T> x, int64_t layers, const acc_t<T>* w,
                                acc_t<T>* da) {
  check_shape("layer_mix_backward_weights", "x", x, dy.rows, layers * dy.cols);
  if (dy.rows == 0) return;
  const int64_t rows_per_part = std::max<int64_t>(ceil_div(dy.rows, kMaxParts), 16);
  const int64_t parts = ceil_div(dy.rows, rows_per_part);
  const Tensor partial = ctx.empty({parts, layers}, DType::f32, MemoryTag::workspace);
  const Tensor g = ctx.empty({layers}, DType::f32, MemoryTag::workspace);
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(layers));
  products_kernel<T><<<grid, kThreads, 0, stream_of(ctx)>>>(dy, x, rows_per_part, partial.data<float>());
  cuda_check_launch("layer_mix_backward_weights");
  finish_columns(ctx, partial.data<float>(), parts, layers, layers, g.data<float>(), nullptr, false);
  softmax_backward_kernel<<<1, kWarp, 0, stream_of(ctx)>>>(layers, w, g.data<float>(), da);
  cuda_check_launch("layer_mix_backward_weights");
}

#define TACTUS_INSTANTIATE(T)                                                                                          \
  template void layer_mix_weights<Cuda, T>(const Context&, int64_t, const T*, float*);                                 \
  template void layer_mix_forward<Cuda, T>(const Context&, Mat<const T>, int64_t, const float*, Mat<T>);               \
  template void layer_mix_backward_x<Cuda, T>(const Context&, Mat<const T>, int64_t, const float*, Mat<T>);            \
  template void layer_mix_backward_weights<Cuda, T>(const Context&, Mat<const T>, Mat<const T>, int64_t, const float*, \
                                                    float*);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
