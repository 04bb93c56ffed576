// CUDA unfold and fold of packed sequences. Both gather: each thread owns the group of columns that it writes.
#include "kernels/conv1d.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

struct Window {
  SegmentsView in, out;
  int kernel, stride, pad;
};

template <class T>
struct Unfold {
  Mat<const T> x;
  Window w;
  Mat<T> columns;
  bool wide;  // groups of eight lie in one tap
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    const int32_t segment = w.out.row_segment[r];
    const int64_t begin = w.in.offsets[segment], length = w.in.offsets[segment + 1] - begin;
    const int64_t first = (r - w.out.offsets[segment]) * w.stride - w.pad;  // input row of tap 0
    const int channels = static_cast<int>(x.cols);
    int tap = static_cast<int>(c) / channels, channel = static_cast<int>(c) - tap * channels;
    float v[kGroup] = {};
    if (wide) {
      const int64_t row = first + tap;
      if (row >= 0 && row < length) load_group(x.row(begin + row) + channel, n, true, v);
    } else {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const int64_t row = first + tap;
        if (i < n && row >= 0 && row < length) v[i] = to_float(x(begin + row, channel));
        if (++channel == channels) channel = 0, ++tap;
      }
    }
    store_group(columns.row(r) + c, n, wide, v);
  }
};

template <class T>
struct Fold {
  Mat<const T> dcolumns;
  Window w;
  Mat<T> dx;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    const int32_t segment = w.in.row_segment[r];
    const int64_t begin = w.out.offsets[segment], length = w.out.offsets[segment + 1] - begin;
    const int64_t position = r - w.in.offsets[segment] + w.pad;
    float sum[kGroup] = {};
    // Taps that reach this row are a stride apart; the window moves one output row back with each.
    int64_t t = position / w.stride;
    for (int64_t tap = position % w.stride; tap < w.kernel && t >= 0; tap += w.stride, --t) {
      if (t >= length) continue;
      float v[kGroup];
      load_group(dcolumns.row(begin + t) + tap * dx.cols + c, n, wide, v);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) sum[i] += v[i];
    }
    store_group(dx.row(r) + c, n, wide, sum);
  }
};

}  // namespace

template <class D, class T>
void unfold(const Context& ctx, Mat<const T> x, SegmentsView in, SegmentsView out, int kernel, int stride, int pad,
            Mat<T> columns) {
  check_shape("unfold", "x", x, in.rows, x.cols);
  check_shape("unfold", "columns", columns, out.rows, kernel * x.cols);
  if (x.cols == 0) return;
  const bool wide = x.cols % kGroup == 0 && wide_rows(x) && wide_rows(columns);
  for_each_group(ctx, columns.rows, columns.cols, Unfold<T>{x, {in, out, kernel, stride, pad}, columns, wide},
                 "unfold");
}

template <class D, class T>
void fold(const Context& ctx, Mat<const T> dcolumns, SegmentsView in, SegmentsView out, int kernel, int stride, int pad,
          Mat<T> dx) {
  check_shape("fold", "dx", dx, in.rows, dx.cols);
  check_shape("fold", "dcolumns", dcolumns, out.rows, kernel * dx.cols);
  const bool wide = dx.cols % kGroup == 0 && wide_rows(dx) && wide_rows(dcolumns);
  for_each_group(ctx, dx.rows, dx.cols, Fold<T>{dcolumns, {in, out, kernel, stride, pad}, dx, wide}, "fold");
}

#define TACTUS_INSTANTIATE(T)                                                                                     \
  template void unfold<Cuda, T>(const Context&, Mat<const T>, SegmentsView, SegmentsView, int, int, int, Mat<T>); \
  template void fold<Cuda, T>(const Context&, Mat<const T>, SegmentsView, SegmentsView, int, int, int, Mat<T>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
