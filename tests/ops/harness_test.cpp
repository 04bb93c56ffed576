// Runs every case of the table on the CPU: finite differences, f32 against f64, repeatability, recomputation,
// propagation of NaN and infinity. No code here knows an op.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/case.h"

namespace tactus::testing_ops {
namespace {

constexpr int kDirections = 64;

Context& cpu() {
  static Context ctx = Context::cpu(2);
  return ctx;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

double norm(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

double output_at(const OpCase& c, const std::vector<InputValues>& inputs, size_t which, const std::vector<double>& v,
                 double step) {
  RunOptions options;
  options.inputs = inputs;
  options.backward = false;
  for (size_t k = 0; k < v.size(); ++k) options.inputs[which].values[k] += step * v[k];
  return weighted_output(c, run_case(cpu(), DType::f64, c, options));
}

/// Four-point central difference: the error is of fourth order, so that a large step keeps the rounding error small.
double derivative_along(const OpCase& c, const std::vector<InputValues>& inputs, size_t which,
                        const std::vector<double>& v) {
  constexpr double h = 5e-4;
  auto at = [&](double step) { return output_at(c, inputs, which, v, step); };
  return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

class Ops : public testing::TestWithParam<std::string> {
 protected:
  const OpCase& op_case() const { return find_case(GetParam()); }
};

class OpsSmooth : public Ops {};

TEST_P(OpsSmooth, FiniteDifferences) {
  const OpCase& c = op_case();
  const RunResult run = run_case(cpu(), DType::f64, c);
  double all = 0;
  for (const auto& g : run.grads) all = std::hypot(all, norm(g));
  Rng rng(mix_key(hash_path(c.name), 3));
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    const size_t n = run.inputs[i].values.size();
    const size_t directions = std::min<size_t>(n, kDirections / run.inputs.size());
    for (size_t d = 0; d < directions; ++d) {
      std::vector<double> v(n);
      for (double& x : v) x = rng.normal();
      const double length = norm(v);
      double expected = 0;
      for (size_t k = 0; k < n; ++k) v[k] /= length, expected += v[k] * run.grads[i][k];
      const double got = derivative_along(c, run.inputs, i, v);
      // A direction nearly orthogonal to the gradient, and a gradient that is mathematically zero, are measured against
      // the whole.
      const double floor = std::max({std::abs(expected), 0.02 * norm(run.grads[i]), 1e-3 * all, 1e-6});
      EXPECT_LE(std::abs(got - expected) / floor, 1e-6)
          << "input " << i << ", direction " << d << ": backward gives " << expected << ", finite difference " << got;
    }
  }
}

TEST_P(Ops, SingleAgainstDouble) {
  const OpCase& c = op_case();
  RunOptions options;
  options.round_to_bf16 = true;  // inputs that both types hold exactly
  const RunResult wide = run_case(cpu(), DType::f64, c, options), narrow = run_case(cpu(), DType::f32, c, options);
  ASSERT_TRUE(all_finite(narrow.outputs));
  ASSERT_TRUE(all_finite(narrow.grads));
  for (size_t i = 0; i < wide.outputs.size(); ++i) {
    EXPECT_LE(relative_difference(narrow.outputs[i], wide.outputs[i], 1e-3), 1e-4) << "output " << i;
  }
  const double floor = std::max(1e-3 * largest(wide.grads), 1e-30);
  for (size_t i = 0; i < wide.grads.size(); ++i) {
    EXPECT_LE(relative_difference(narrow.grads[i], wide.grads[i], floor), 1e-4) << "gradient of input " << i;
  }
}

TEST_P(Ops, TwiceBitwiseEqual) {
  const RunResult a = run_case(cpu(), DType::f32, op_case()), b = run_case(cpu(), DType::f32, op_case());
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.grads, b.grads);
}

TEST_P(Ops, RecomputeBitwiseEqual) {
  RunOptions options;
  const RunResult direct = run_case(cpu(), DType::f32, op_case());
  options.recompute = true;
  const RunResult again = run_case(cpu(), DType::f32, op_case(), options);
  EXPECT_EQ(direct.outputs, again.outputs);
  EXPECT_EQ(direct.grads, again.grads);
}

class OpsProbe : public Ops {};

/// A non-finite number in an input element with a gradient must be seen in some output: nothing may swallow it.
TEST_P(OpsProbe, NonFinitePropagates) {
  const OpCase& c = op_case();
  const RunResult run = run_case(cpu(), DType::f32, c);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  auto seen = [&](size_t input, size_t element, double value) {
    RunOptions options;
    options.inputs = run.inputs;
    options.backward = false;
    options.inputs[input].values[element] = value;
    return !all_finite(run_case(cpu(), DType::f32, c, options).outputs);
  };
  Rng rng(mix_key(hash_path(c.name), 4));
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    const size_t n = run.inputs[i].values.size();
    if (n == 0) continue;
    for (size_t element : {size_t{0}, static_cast<size_t>(rng.below(n)), n - 1}) {
      if (std::abs(run.grads[i][element]) <= 1e-7 * largest(run.grads)) continue;
      EXPECT_TRUE(seen(i, element, kNaN)) << "NaN in input " << i << ", element " << element;
      if (c.saturates) continue;
      // Only one sign need be seen: ReLU and softmax rightly ignore minus infinity.
      EXPECT_TRUE(seen(i, element, kInfinity) || seen(i, element, -kInfinity))
          << "infinity in input " << i << ", element " << element;
    }
  }
}

class OpsExtreme : public Ops {};

TEST_P(OpsExtreme, LargeInputsStayFinite) {
  const OpCase& c = op_case();
  RunOptions options;
  options.inputs = run_case(cpu(), DType::f32, c).inputs;
  const double factor = 6e4 / largest(options.inputs[0].values);
  for (double& v : options.inputs[0].values) v *= factor;
  const RunResult run = run_case(cpu(), DType::f32, c, options);
  EXPECT_TRUE(all_finite(run.outputs));
  EXPECT_TRUE(all_finite(run.grads));
}

INSTANTIATE_TEST_SUITE_P(Cpu, OpsSmooth,
                         testing::ValuesIn(case_names([](const OpCase& c) { return c.smooth && !c.large; })),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cpu, Ops, testing::ValuesIn(case_names([](const OpCase&) { return true; })), test_name);
INSTANTIATE_TEST_SUITE_P(Cpu, OpsProbe, testing::ValuesIn(case_names([](const OpCase& c) { return !c.large; })),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Cpu, OpsExtreme, testing::ValuesIn(case_names([](const OpCase& c) { return c.extreme; })),
                         test_name);

}  // namespace
}  // namespace tactus::testing_ops
