#include "layers/module.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/mtla.h"
#include "kernels/rope.h"

namespace tactus {
namespace {

std::vector<double> sinusoid_values(int64_t rows, int64_t width, int64_t first) {
  const int64_t half = width / 2;
  std::vector<double> v(static_cast<size_t>(rows * width), 0.0);
  for (int64_t m = 0; m < rows; ++m) {
    if (first + m == 1) continue;
    for (int64_t k = 0; k < half; ++k) {
      const double step = half > 1 ? std::log(10000.0) / static_cast<double>(half - 1) : 0.0;
      const double angle = static_cast<double>(first + m) * std::exp(-static_cast<double>(k) * step);
      v[static_cast<size_t>(m * width + k)] = std::sin(angle);
      v[static_cast<size_t>(m * width + half + k)] = std::cos(angle);
    }
  }
  return v;
}

}  // namespace

template <class Make>
const Tensor& Tables::grown(const std::string& key, int64_t rows, Make make) {
  Tensor& t = tables_[key];
  // Doubling keeps the number of rebuilds logarithmic in the longest sequence.
  if (!t.defined() || t.dim(0) < rows)
    t = make(std::max<int64_t>(64, t.defined() ? std::max(rows, 2 * t.dim(0)) : rows));
  return t;
}

const Tensor& Tables::rope(int64_t positions, int64_t dim, double theta, DType acc) {
  return grown("rope " + std::to_string(dim) + " " + std::to_string(theta) + " " + to_string(acc), positions,
               [&](int64_t n) { return rope_table(ctx_, n, dim, theta, acc); });
}

const Tensor& Tables::chunk_code(int64_t chunks, int64_t width, DType dtype) {
  return grown("chunk " + std::to_string(width) + " " + to_string(dtype), chunks,
               [&](int64_t n) { return tactus::chunk_code(ctx_, n, width, dtype); });
}

const Tensor& Tables::sinusoid(int64_t rows, int64_t width, int64_t first, DType acc) {
  return grown("sinusoid " + std::to_string(width) + " " + std::to_string(first) + " " + to_string(acc), rows,
               [&](int64_t n) {
                 return ctx_.upload_real(sinusoid_values(n, width, first), {n, width}, acc, MemoryTag::workspace);
               });
}

}  // namespace tactus
