#include "kernels/pointwise.h"

#include "kernels/adam.h"
#include "kernels/reduce.h"
#include "kernels/rope.h"
#include "kernels/shared/cpu_math.h"
#include "tests/kernels/kernel_testing.h"

namespace tactus::testing {
namespace {

template <class T>
class Pointwise : public ::testing::Test {};
TYPED_TEST_SUITE(Pointwise, Reals);

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

TEST(CpuMath, SinglePrecisionExponential) {
  double worst = 0;
  for (float x = -87; x < 88; x += 0.00137f) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_of(x) - exact) / exact);
  }
  EXPECT_LT(worst, 2.4e-7);
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(exp_of(-1e30f), 0.0f);
  EXPECT_EQ(exp_of(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(exp_of(89.0f), std::numeric_limits<float>::infinity());
  EXPECT_NEAR(exp_of(-100.0f), std::exp(-100.0), 2e-45);
  EXPECT_TRUE(std::isnan(exp_of(nan_of<float>)));
}

TYPED_TEST(Pointwise, AxpbyAndRelu) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  for (auto [rows, cols, gap] :
       {std::array<int64_t, 3>{0, 3, 0}, {1, 1, 0}, {70, 33, 5}, {1, 50001, 0}, {66000, 1, 2}}) {
    Grid<T> x(rows, cols, gap), y(rows, cols), g(rows, cols, 1);
    x.random(1), y.random(2), g.random(3);
    const Grid<T> before = y;
    axpby<Cpu, T>(ctx, 2, x.in(), -0.5, y.mat());
    expect_close(y, [&](int64_t r, int64_t c) { return 2.0 * x(r, c) - 0.5 * before(r, c); });
    y.fill(nan_of<T>);
    axpby<Cpu, T>(ctx, 3, x.in(), 0, y.mat());
    expect_close(y, [&](int64_t r, int64_t c) { return 3.0 * x(r, c); });
    relu_forward<Cpu, T>(ctx, x.in(), y.mat());
    expect_close(y, [&](int64_t r, int64_t c) { return std::max(0.0, static_cast<double>(x(r, c))); });
    const Grid<T> dy = g;
    relu_backward<Cpu, T>(ctx, dy.in(), y.in(), g.mat());
    expect_close(g, [&](int64_t r, int64_t c) { return x(r, c) > 0 ? static_cast<double>(dy(r, c)) : 0.0; });
  }
  Grid<T> x(1, 3), y(1, 3);
  x(0, 0) = nan_of<T>, x(0, 1) = -std::numeric_limits<T>::infinity(), x(0, 2) = std::numeric_limits<T>::infinity();
  relu_forward<Cpu, T>(ctx, x.in(), y.mat());
  EXPECT_TRUE(std::isnan(y(0, 0)));
  EXPECT_EQ(y(0, 1), 0);
  EXPECT_TRUE(std::isinf(y(0, 2)));
}

TYPED_TEST(Pointwise, CastAndGather) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  std::vector<T> x = {T(1.5), T(-2.25), nan_of<T>};
  std::vector<float> single(3);
  std::vector<double> wide(3);
  cast<Cpu, T, float>(ctx, 3, x.data(), single.data());
  cast<Cpu, T, double>(ctx, 3, x.data(), wide.data());
  EXPECT_EQ(single[1], -2.25f);
  EXPECT_EQ(wide[0], 1.5);
  EXPECT_TRUE(std::isnan(single[2]) && std::isnan(wide[2]));
  Grid<T> from(4, 3, 2), to(5, 3, 1);
  from.random(1);
  const int32_t index[] = {3, -1, 0, 3, 2};
  gather_rows<Cpu, T>(ctx, from.in(), index, to.mat());
  expect_close(to, [&](int64_t r, int64_t c) { return index[r] < 0 ? 0.0 : static_cast<double>(from(index[r], c)); });
  const int32_t outside[] = {4};
  EXPECT_THROW((gather_rows<Cpu, T>(ctx, from.in(), outside, to.mat().slice(0, 1))), ShapeError);
}

TYPED_TEST(Pointwise, GatedLinearUnit) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  for (int64_t c : {1, 7, 64}) {
    Grid<T> x(50, 2 * c, 3), y(50, c, 2), dy(50, c, 1), dx(50, 2 * c, 1);
    x.random(1, 4), dy.random(2);
    glu_forward<Cpu, T>(ctx, x.in(), y.mat());
    expect_close(y, [&](int64_t r, int64_t i) { return x(r, i) * sigmoid_of(x(r, c + i)); });
    glu_backward<Cpu, T>(ctx, dy.in(), x.in(), dx.mat());
    expect_close(dx, [&](int64_t r, int64_t i) {
      const double gate = sigmoid_of(x(r, c + i % c));
      return i < c ? dy(r, i) * gate : dy(r, i - c) * x(r, i - c) * gate * (1 - gate);
    });
  }
}

TYPED_TEST(Pointwise, ScaleAddTableRestartsInEverySequence) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  const Segments segments(ctx, {3, 0, 5, 1});
  Grid<T> x(9, 4, 1), y(9, 4, 2), table(5, 4);
  x.random(1), table.random(2);
  scale_add_table<Cpu, T>(ctx, x.in(), 1.5, table.data(), segments.view(), y.mat());
  expect_close(y, [&](int64_t r, int64_t c) { return 1.5 * x(r, c) + table(r < 3 ? r : r < 8 ? r - 3 : 0, c); });
}

TYPED_TEST(Pointwise, Rope) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  const Tensor table = rope_table(ctx, 40, 6, 10000, dtype_of<T>());
  Grid<T> x(5, 3 * 8, 1), y(5, 3 * 8, 2);
  x.random(1), y.random(2);
  const Grid<T> before = y;
  const int32_t positions[] = {0, 39, 7, 7, 1};
  rope<Cpu, T>(ctx, x.in(), 3, 8, 6, positions, table.data<T>(), false, y.mat());
  expect_close(y, [&](int64_t r, int64_t c) {
    const int64_t i = c % 8;
    if (i >= 6) return static_cast<double>(before(r, c));
    const double angle = positions[r] * std::pow(10000.0, -static_cast<double>(i / 2 * 2) / 6);
    return i % 2 == 0 ? x(r, c) * std::cos(angle) - x(r, c + 1) * std::sin(angle)
                      : x(r, c - 1) * std::sin(angle) + x(r, c) * std::cos(angle);
  });
  rope<Cpu, T>(ctx, y.in(), 3, 8, 6, positions, table.data<T>(), true, y.mat());
  expect_close(y, [&](int64_t r, int64_t c) { return static_cast<double>(c % 8 < 6 ? x(r, c) : before(r, c)); });
}

TYPED_TEST(Pointwise, SumsDoNotDependOnThreads) {
  using T = TypeParam;
  Grid<T> x(1001, 37, 3);
  x.random(1);
  std::vector<T> one(37, T(1)), three(37, T(1));
  column_sum<Cpu, T>(Context::cpu(1), x.in(), one.data(), true);
  column_sum<Cpu, T>(Context::cpu(3), x.in(), three.data(), true);
  EXPECT_EQ(one, three);
  for (int64_t c = 0; c < 37; ++c) {
    double sum = 1;
    for (int64_t r = 0; r < 1001; ++r) sum += x(r, c);
    EXPECT_NEAR(one[c], sum, 50 * tolerance<T>);
  }
  column_sum<Cpu, T>(Context::cpu(1), Grid<T>(0, 37).in(), one.data(), false);
  EXPECT_EQ(one, std::vector<T>(37, T(0)));

  std::vector<T> flat(100000);
  Rng rng(2);
  double total = 0, squares = 0;
  for (T& v : flat) {
    v = static_cast<T>(rng.normal());
    total += v, squares += static_cast<double>(v) * v;
  }
  T sum1, sum3;
  reduce_sum<Cpu, T>(Context::cpu(1), 100000, flat.data(), &sum1);
  reduce_sum<Cpu, T>(Context::cpu(3), 100000, flat.data(), &sum3);
  EXPECT_EQ(sum1, sum3);
  EXPECT_NEAR(sum1, total, 1e-3 * tolerance<T> * 100000);
  const double norm = squared_norm<Cpu, T>(Context::cpu(2), 100000, flat.data());
  EXPECT_NEAR(norm, squares, 1e-9 * squares);
  flat[77777] = std::numeric_limits<T>::infinity();
  const double broken = squared_norm<Cpu, T>(Context::cpu(2), 100000, flat.data());
  EXPECT_FALSE(std::isfinite(broken));
}

TYPED_TEST(Pointwise, AdamFollowsItsFormula) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  constexpr int64_t n = 5003;
  Grid<T> p(1, n), m(1, n), v(1, n), g(1, n), working(1, n);
  p.random(1), g.random(2), m.fill(0), v.fill(0);
  std::vector<double> rp(n), rm(n, 0), rv(n, 0);
  for (int64_t i = 0; i < n; ++i) rp[i] = p(0, i);
  for (int64_t step = 1; step <= 3; ++step) {
    AdamOptions options{.learning_rate = 0.01,
                        .beta1 = 0.9,
                        .beta2 = 0.98,
                        .eps = 1e-6,
                        .weight_decay = 0.1,
                        .step = step,
                        .grad_scale = 0.25};
    adam_step<Cpu, T>(ctx, n, options, nullptr, p.data(), m.data(), v.data(), g.data(), working.data());
    for (int64_t i = 0; i < n; ++i) {
      const double grad = 0.25 * g(0, i);
      rp[i] -= 0.01 * 0.1 * rp[i];
      rm[i] = 0.9 * rm[i] + 0.1 * grad, rv[i] = 0.98 * rv[i] + 0.02 * grad * grad;
      rp[i] -=
          0.01 * std::sqrt(1 - std::pow(0.98, step)) / (1 - std::pow(0.9, step)) * rm[i] / (std::sqrt(rv[i]) + 1e-6);
    }
  }
  expect_close(p, [&](int64_t, int64_t c) { return rp[c]; });
  expect_same(working, p, 0);
}

}  // namespace
}  // namespace tactus::testing
