#include "kernels/rope.h"

#include <cmath>
#include <vector>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {

Tensor rope_table(const Context& ctx, int64_t positions, int64_t dim, double theta, DType dtype) {
  check_value(dim >= 0 && dim % 2 == 0, "rope_table", "dim", "even", dim);
  std::vector<double> table(positions * dim);
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < dim; i += 2) {
      const double angle = static_cast<double>(p) * std::pow(theta, -static_cast<double>(i) / static_cast<double>(dim));
      table[p * dim + i] = std::cos(angle);
      table[p * dim + i + 1] = std::sin(angle);
    }
  }
  return ctx.upload_real(table, {positions, dim}, dtype);
}

template <class D, class T>
void rope(const Context& ctx, Mat<const T> x, int heads, int64_t head_stride, int64_t dim, const int32_t* positions,
          const acc_t<T>* table, bool inverse, Mat<T> y) {
  check_shape("rope", "x", x, y.rows, x.cols);
  check_shape("rope", "y", y, y.rows, y.cols);
  check_value(dim >= 0 && dim % 2 == 0, "rope", "dim", "even", dim);
  const int64_t used = heads > 0 ? (heads - 1) * head_stride + dim : 0;
  check_value(x.rows == 0 || used <= std::min(x.cols, y.cols), "rope", "columns used by the heads",
              "at most those of x and y", used);
  const T sign = inverse ? T(-1) : T(1);
  parallel_for(ctx, y.rows, 4 * heads * dim, [&](int64_t r) {
    const T* turn = table + positions[r] * dim;
    for (int h = 0; h < heads; ++h) {
      const T* in = x.row(r) + h * head_stride;
      T* out = y.row(r) + h * head_stride;
#pragma omp simd
      for (int64_t i = 0; i < dim; i += 2) {
        const T a = in[i], b = in[i + 1], c = turn[i], s = sign * turn[i + 1];
        out[i] = a * c - b * s;
        out[i + 1] = a * s + b * c;
      }
    }
  });
}

template void rope<Cpu, double>(const Context&, Mat<const double>, int, int64_t, int64_t, const int32_t*, const double*,
                                bool, Mat<double>);
template void rope<Cpu, float>(const Context&, Mat<const float>, int, int64_t, int64_t, const int32_t*, const float*,
                               bool, Mat<float>);

}  // namespace tactus
