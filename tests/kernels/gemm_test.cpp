#include "kernels/gemm.h"

#include "tests/kernels/kernel_testing.h"

namespace tactus::testing {
namespace {

template <class T>
class Gemm : public ::testing::Test {};
TYPED_TEST_SUITE(Gemm, Reals);

template <class T>
void check_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, double beta, bool bias, bool relu, int threads) {
  const Context ctx = Context::cpu(threads);
  Grid<T> a(ta ? k : m, ta ? m : k, 3), b(tb ? n : k, tb ? k : n, 1), c(m, n, 5), row(1, n);
  a.random(1), b.random(2), row.random(4);
  beta == 0 ? c.fill(nan_of<T>) : c.random(3);
  const Grid<T> before = c;
  GemmOptions<T> options{.transpose_a = ta, .transpose_b = tb, .alpha = 0.5, .beta = beta};
  options.bias = bias ? row.data() : nullptr;
  options.relu = relu;
  gemm<Cpu, T, T>(ctx, a.in(), b.in(), c.mat(), options);
  expect_close(
      c,
      [&](int64_t r, int64_t col) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          sum += static_cast<double>(ta ? a(i, r) : a(r, i)) * static_cast<double>(tb ? b(col, i) : b(i, col));
        }
        sum *= 0.5;
        if (beta != 0) sum += beta * before(r, col);
        if (bias) sum += row(0, col);
        return relu && sum < 0 ? 0.0 : sum;
      },
      tolerance<T> * 5);
}

TYPED_TEST(Gemm, AllTransposesShapesAndEpilogues) {
  const int64_t shapes[][3] = {{1, 1, 1},     {3, 5, 7}, {1, 70, 33}, {70, 1, 9}, {65, 47, 31},
                               {100, 90, 64}, {0, 4, 3}, {4, 0, 3},   {4, 3, 0}};
  for (const auto& s : shapes) {
    for (int i = 0; i < 8; ++i) {
      check_product<TypeParam>(s[0], s[1], s[2], i & 1, i & 2, i & 4 ? -1.5 : 0, i & 1, (i & 6) == 4, 1 + (i >> 1) % 3);
    }
  }
}

TYPED_TEST(Gemm, Batch) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  Grid<T> a(6 * 40, 20), b(6 * 20, 50), c(6 * 40, 50);
  a.random(1), b.random(2);
  GemmOptions<T> options;
  options.batch = 6, options.stride_a = 40 * 20, options.stride_b = 20 * 50, options.stride_c = 40 * 50;
  gemm<Cpu, T, T>(ctx, a.in().slice(0, 40), b.in().slice(0, 20), c.mat().slice(0, 40), options);
  expect_close(
      c,
      [&](int64_t r, int64_t col) {
        double sum = 0;
        for (int64_t i = 0; i < 20; ++i)
          sum += static_cast<double>(a(r, i)) * static_cast<double>(b(r / 40 * 20 + i, col));
        return sum;
      },
      tolerance<T> * 5);
}

TYPED_TEST(Gemm, NanPassesReluAndWrongShapesAreNamed) {
  using T = TypeParam;
  const Context ctx = Context::cpu(1);
  Grid<T> a(2, 3), b(3, 4), c(2, 4);
  a.random(1), b.random(2);
  a(0, 1) = nan_of<T>;
  GemmOptions<T> options;
  options.relu = true;
  gemm<Cpu, T, T>(ctx, a.in(), b.in(), c.mat(), options);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(std::isnan(c(0, i)));
    EXPECT_FALSE(std::isnan(c(1, i)));
  }
  try {
    gemm<Cpu, T, T>(ctx, a.in(), a.in(), c.mat());
    FAIL() << "no error";
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "gemm: b is [2, 3], expected [3, 4]");
  }
}

}  // namespace
}  // namespace tactus::testing
