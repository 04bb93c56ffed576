// Matrices and comparisons for kernel tests on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "core/segments.h"

namespace tactus::testing {

template <class T>
constexpr double tolerance = std::is_same_v<T, double> ? 1e-11 : 2e-5;

/// A matrix whose rows are `gap` values further apart than they are long; what lies between must stay as it is.
template <class T>
class Grid {
 public:
  static constexpr T kSentinel = T(-7777);
  Grid(int64_t rows, int64_t cols, int64_t gap = 0)
      : rows_(rows), cols_(cols), ld_(cols + gap), values_(rows * ld_, kSentinel) {}
  Grid& fill(T value) {
    for (int64_t r = 0; r < rows_; ++r) std::fill_n(&values_[r * ld_], cols_, value);
    return *this;
  }
  Grid& random(uint64_t key, double scale = 1) {
    Rng rng(key);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) (*this)(r, c) = static_cast<T>(scale * rng.normal());
    }
    return *this;
  }
  T& operator()(int64_t r, int64_t c) { return values_[r * ld_ + c]; }
  T operator()(int64_t r, int64_t c) const { return values_[r * ld_ + c]; }
  Mat<T> mat() { return {values_.data(), rows_, cols_, ld_}; }
  Mat<const T> mat() const { return {values_.data(), rows_, cols_, ld_}; }
  Mat<const T> in() const { return mat(); }
  T* data() { return values_.data(); }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  bool gaps_intact() const {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = cols_; c < ld_; ++c) {
        if (values_[r * ld_ + c] != kSentinel) return false;
      }
    }
    return true;
  }

 private:
  int64_t rows_, cols_, ld_;
  std::vector<T> values_;
};

/// Every entry of `actual` equals expected(r, c) within `limit`, relative to the larger of 1 and the value.
template <class T, class F>
void expect_close(const Grid<T>& actual, F&& expected, double limit = tolerance<T>) {
  int failures = 0;
  for (int64_t r = 0; r < actual.rows(); ++r) {
    for (int64_t c = 0; c < actual.cols(); ++c) {
      const double e = expected(r, c), a = actual(r, c);
      if (a == e || (std::isnan(a) && std::isnan(e))) continue;
      if (!(std::abs(a - e) <= limit * std::max(1.0, std::abs(e)))) {
        if (++failures <= 3) ADD_FAILURE() << "entry (" << r << ", " << c << ") is " << a << ", expected " << e;
      }
    }
  }
  EXPECT_TRUE(actual.gaps_intact());
}

template <class T>
void expect_same(const Grid<T>& actual, const Grid<T>& expected, double limit = tolerance<T>) {
  expect_close(
      actual, [&](int64_t r, int64_t c) { return static_cast<double>(expected(r, c)); }, limit);
}

/// Central difference of f with respect to x.
template <class F>
double slope(double& x, F&& f, double step = 1e-5) {
  const double at = x;
  x = at + step;
  const double up = f();
  x = at - step;
  const double down = f();
  x = at;
  return (up - down) / (2 * step);
}

template <class T>
constexpr T nan_of = std::numeric_limits<T>::quiet_NaN();

using Reals = ::testing::Types<double, float>;

}  // namespace tactus::testing
