#include <algorithm>
#include <cmath>

#include "train/bench/kernel_bench_cases.h"

namespace tactus {
namespace {

constexpr int64_t kPool = 65537;  // normal numbers that are repeated; prime, so that rows of a matrix differ

const std::vector<double>& pool() {
  static const std::vector<double> values = [] {
    std::vector<double> drawn(kPool);
    Rng rng(hash_path("kernel bench"));
    for (double& x : drawn) x = rng.normal();
    return drawn;
  }();
  return values;
}

template <class T>
Tensor repeat(const Context& ctx, const std::vector<float>& values, Shape shape, size_t begin) {
  std::vector<T> typed(values.size());
  std::transform(values.begin(), values.end(), typed.begin(), [](float x) { return static_cast<T>(x); });
  std::vector<T> all(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < all.size(); begin = 0) {
    const size_t n = std::min(typed.size() - begin, all.size() - i);
    std::copy_n(&typed[begin], n, &all[i]);
    i += n;
  }
  return ctx.upload(all.data(), shape);
}

}  // namespace

KernelData::KernelData(const Context& ctx, DType dtype, KernelExtents extents)
    : ctx_(ctx), dtype_(dtype), extents_(extents) {}

Tensor KernelData::draw(Shape shape, DType dtype, double deviation, bool positive) {
  return keep(shape, dtype, [&] {
    std::vector<float> values(kPool);
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = deviation * pool()[i];
      values[i] = static_cast<float>(bf16(static_cast<float>(positive ? std::max(0.1, std::abs(x)) : x)));
    }
    const size_t begin = 7919 * first_.size() % kPool;
    if (dtype == DType::f64) return repeat<double>(ctx_, values, shape, begin);
    if (dtype == DType::f32) return repeat<float>(ctx_, values, shape, begin);
    return repeat<bf16>(ctx_, values, shape, begin);
  });
}

Tensor KernelData::keep(Shape shape, DType dtype, const std::function<Tensor()>& make) {
  Tensor made;
  if (copying_) {
    made = ctx_.empty(shape, dtype);
    ctx_.copy(made, first_.at(next_++));
  } else {
    made = make();
    first_.push_back(made);
  }
  set_bytes_ += made.bytes();
  return made;
}

Tensor KernelData::integers(const std::vector<int32_t>& values) {
  return keep({static_cast<int64_t>(values.size())}, DType::i32, [&] { return ctx_.upload(values); });
}

std::vector<int32_t> KernelData::draws(int64_t n, int64_t bound) {
  Rng rng(hash_path("kernel bench integers"));
  std::vector<int32_t> values(static_cast<size_t>(n));
  for (int32_t& v : values) v = static_cast<int32_t>(rng.below(static_cast<uint64_t>(bound)));
  return values;
}

Segments KernelData::utterances() const {
  std::vector<int64_t> lengths;
  for (int64_t left = rows(), i = 0; left > 0; ++i) {
    lengths.push_back(std::min<int64_t>(left, 155 + 37 * i % 111 - 55));
    left -= lengths.back();
  }
  return Segments(ctx_, lengths);
}

Segments KernelData::sentences(const Segments& prompts) const {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < prompts.count(); ++i) lengths.push_back(28 + 7 * i % 21 - 10);
  return Segments(ctx_, lengths);
}

void KernelData::next_set() { copying_ = true, next_ = 0, set_bytes_ = 0; }

double bytes_of(std::initializer_list<Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<double>(t.bytes());
  return bytes;
}

std::string extents_text(std::initializer_list<int64_t> extents) {
  std::string text;
  for (int64_t e : extents) text += (text.empty() ? "" : " x ") + std::to_string(e);
  return text;
}

}  // namespace tactus
