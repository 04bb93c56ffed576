// CUDA rotary embedding: a thread turns four pairs of one head.
#include "kernels/rope.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

template <class T>
struct Rope {
  Mat<const T> x;
  int groups;  // groups of eight columns in a head; the launch pads every head to whole groups
  int64_t head_stride, dim;
  const int32_t* positions;
  const float* table;
  float direction;
  Mat<T> y;
  bool wide, wide_table;
  __device__ void operator()(int64_t r, int64_t padded, int) const {
    const int group = static_cast<int>(padded / kGroup), head = group / groups;
    const int64_t c = static_cast<int64_t>(group - head * groups) * kGroup;
    const int n = static_cast<int>(dim - c < kGroup ? dim - c : kGroup);
    float v[kGroup], angle[kGroup];
    load_group(x.row(r) + head * head_stride + c, n, wide, v);
    load_group(table + positions[r] * dim + c, n, wide_table, angle);
#pragma unroll
    for (int i = 0; i < kGroup; i += 2) {
      const float cosine = angle[i], sine = direction * angle[i + 1], a = v[i], b = v[i + 1];
      v[i] = a * cosine - b * sine;
      v[i + 1] = a * sine + b * cosine;
    }
    store_group(y.row(r) + head * head_stride + c, n, wide, v);
  }
};

}  // namespace

template <class D, class T>
void rope(const Context& ctx, Mat<const T> x, int heads, int64_t head_stride, int64_t dim, const int32_t* positions,
          const acc_t<T>* table, bool inverse, Mat<T> y) {
  check_shape("rope", "x", x, y.rows, x.cols);
  check_shape("rope", "y", y, y.rows, y.cols);
  check_value(dim >= 0 && dim % 2 == 0, "rope", "dim", "even", dim);
  if (heads <= 0 || dim == 0 || y.rows == 0) return;
  const int64_t used = (heads - 1) * head_stride + dim;
  check_value(used <= std::min(x.cols, y.cols), "rope", "columns used by the heads", "at most those of x and y", used);
  const int64_t groups = ceil_div(dim, kGroup);
  const bool wide = wide_rows(x) && wide_rows(y) && head_stride * static_cast<int64_t>(sizeof(T)) % 16 == 0;
  const Rope<T> f{x,     static_cast<int>(groups), head_stride, dim,  positions,
                  table, inverse ? -1.0f : 1.0f,   y,           wide, wide_pointer(table) && dim % 4 == 0};
  for_each_group(ctx, y.rows, heads * groups * kGroup, f, "rope");
}

template void rope<Cuda, float>(const Context&, Mat<const float>, int, int64_t, int64_t, const int32_t*, const float*,
                                bool, Mat<float>);
template void rope<Cuda, bf16>(const Context&, Mat<const bf16>, int, int64_t, int64_t, const int32_t*, const float*,
                               bool, Mat<bf16>);

}  // namespace tactus
