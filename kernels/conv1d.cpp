#include "kernels/conv1d.h"

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {
namespace {

void check_lengths(const char* op, const SegmentsView& in, const SegmentsView& out, int kernel, int stride, int pad) {
  check_value(kernel >= 1 && stride >= 1 && pad >= 0, op, "kernel, stride or pad", "positive (pad: not negative)",
              std::min({kernel - 1, stride - 1, pad}));
  check_value(in.count == out.count, op, "number of output sequences", "that of the input", out.count);
  for (int32_t s = 0; s < in.count; ++s) {
    const int64_t length = conv1d_length(in.offsets[s + 1] - in.offsets[s], kernel, stride, pad);
    check_value(out.offsets[s + 1] - out.offsets[s] == length, op, "length of an output sequence",
                std::to_string(length).c_str(), out.offsets[s + 1] - out.offsets[s]);
  }
}

}  // namespace

template <class D, class T>
void unfold(const Context& ctx, Mat<const T> x, SegmentsView in, SegmentsView out, int kernel, int stride, int pad,
            Mat<T> columns) {
  check_lengths("unfold", in, out, kernel, stride, pad);
  check_shape("unfold", "x", x, in.rows, x.cols);
  check_shape("unfold", "columns", columns, out.rows, kernel * x.cols);
  const int64_t channels = x.cols;
  parallel_for(ctx, out.rows, kernel * channels, [&](int64_t r) {
    const int32_t s = out.row_segment[r];
    const int64_t first = (r - out.offsets[s]) * stride - pad, length = in.offsets[s + 1] - in.offsets[s];
    for (int64_t j = 0; j < kernel; ++j) {
      T* to = columns.row(r) + j * channels;
      const int64_t t = first + j;
      if (t < 0 || t >= length) {
        std::fill_n(to, channels, T(0));
      } else {
        std::copy_n(x.row(in.offsets[s] + t), channels, to);
      }
    }
  });
}

template <class D, class T>
void fold(const Context& ctx, Mat<const T> dcolumns, SegmentsView in, SegmentsView out, int kernel, int stride, int pad,
          Mat<T> dx) {
  check_lengths("fold", in, out, kernel, stride, pad);
  check_shape("fold", "dx", dx, in.rows, dx.cols);
  check_shape("fold", "dcolumns", dcolumns, out.rows, kernel * dx.cols);
  const int64_t channels = dx.cols;
  parallel_for(ctx, in.rows, (kernel / stride + 1) * channels, [&](int64_t r) {
    const int32_t s = in.row_segment[r];
    const int64_t shifted = r - in.offsets[s] + pad, length = out.offsets[s + 1] - out.offsets[s];
    T* sum = dx.row(r);
    std::fill_n(sum, channels, T(0));
    for (int64_t j = shifted % stride; j < kernel && j <= shifted; j += stride) {
      const int64_t t = (shifted - j) / stride;
      if (t < length) add_scaled(T(1), dcolumns.row(out.offsets[s] + t) + j * channels, sum, channels);
    }
  });
}

#define TACTUS_INSTANTIATE(T)                                                                                    \
  template void unfold<Cpu, T>(const Context&, Mat<const T>, SegmentsView, SegmentsView, int, int, int, Mat<T>); \
  template void fold<Cpu, T>(const Context&, Mat<const T>, SegmentsView, SegmentsView, int, int, int, Mat<T>);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
