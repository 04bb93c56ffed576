// Values of the kernels without an autograd function, on the CPU, against sums written out here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/adam.h"
#include "kernels/decode/attention_decode.h"
#include "kernels/pointwise.h"
#include "kernels/reduce.h"
#include "tests/ops/case.h"
#include "tests/ops/kernel_runs.h"

namespace tactus::testing_ops {
namespace {

Context& cpu() {
  static Context ctx = Context::cpu(2);
  return ctx;
}

class KernelRuns : public testing::TestWithParam<KernelRun> {};

TEST_P(KernelRuns, SingleAgainstDouble) {
  const KernelResult wide = GetParam().run(cpu(), DType::f64), narrow = GetParam().run(cpu(), DType::f32);
  ASSERT_EQ(wide.real.size(), narrow.real.size());
  for (size_t i = 0; i < wide.real.size(); ++i) {
    EXPECT_LE(relative_difference(narrow.real[i], wide.real[i], 1e-3), 1e-5) << "result " << i;
  }
  EXPECT_EQ(narrow.exact, wide.exact);
}

INSTANTIATE_TEST_SUITE_P(Cpu, KernelRuns, testing::ValuesIn(kernel_runs()),
                         [](const testing::TestParamInfo<KernelRun>& info) { return info.param.name; });

TEST(Kernels, AdamFollowsItsFormula) {
  double p = 0.8, m = 0, v = 0, working = 0;
  double expected_p = p, expected_m = 0, expected_v = 0;
  for (int t = 1; t <= 5; ++t) {
    double raw = 0.3 * t - 1;
    const double grad = 0.5 * raw;
    const AdamOptions options{0.1, 0.9, 0.98, 1e-8, 0.05, t, 0.5};
    adam_step<Cpu, double>(cpu(), 1, options, nullptr, &p, &m, &v, &raw, &working);
    expected_p -= 0.1 * 0.05 * expected_p;
    expected_m = 0.9 * expected_m + 0.1 * grad;
    expected_v = 0.98 * expected_v + 0.02 * grad * grad;
    const double rate = 0.1 * std::sqrt(1 - std::pow(0.98, t)) / (1 - std::pow(0.9, t));
    expected_p -= rate * expected_m / (std::sqrt(expected_v) + 1e-8);
    EXPECT_NEAR(p, expected_p, 1e-14);
    EXPECT_EQ(working, p);
  }
}

TEST(Kernels, AdamsFirstStepIsTheLearningRate) {
  double p = 1, m = 0, v = 0;
  double grad = -123;
  adam_step<Cpu, double>(cpu(), 1, {.learning_rate = 0.01, .step = 1}, nullptr, &p, &m, &v, &grad, nullptr);
  EXPECT_NEAR(p, 1.01, 1e-10);
}

TEST(Kernels, SumsAndNorms) {
  std::vector<double> x(1001);
  double sum = 0, square = 0, out = -1;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7) - 2.5, sum += x[i], square += x[i] * x[i];
  reduce_sum<Cpu, double>(cpu(), 1001, x.data(), &out);
  EXPECT_NEAR(out, sum, 1e-9);
  EXPECT_NEAR((squared_norm<Cpu, double>(cpu(), 1001, x.data())), square, 1e-9);
  reduce_sum<Cpu, double>(cpu(), 0, x.data(), &out);
  EXPECT_EQ(out, 0);
  EXPECT_EQ((squared_norm<Cpu, double>(cpu(), 0, x.data())), 0);
  const std::vector<float> large(4, 1e30f);  // the squares overflow a float, not a double
  EXPECT_NEAR((squared_norm<Cpu, float>(cpu(), 4, large.data())) / 4e60, 1, 1e-6);
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    x[700] = bad;
    EXPECT_FALSE(std::isfinite(squared_norm<Cpu, double>(cpu(), 1001, x.data())));
  }
}

TEST(Kernels, ColumnSumAssignsOrAccumulates) {
  const std::vector<double> x{1, 2, 9, 3, 4, 9, 5, 6, 9};
  std::vector<double> out{100, 100};
  const Mat<const double> window{x.data(), 3, 2, 3};
  column_sum<Cpu, double>(cpu(), window, out.data(), true);
  EXPECT_EQ(out, (std::vector<double>{109, 112}));
  column_sum<Cpu, double>(cpu(), window, out.data(), false);
  EXPECT_EQ(out, (std::vector<double>{9, 12}));
}

TEST(Kernels, GatherAndCast) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> index{2, -1, 0};
  std::vector<double> y(6, 7);
  gather_rows<Cpu, double>(cpu(), {x.data(), 3, 2, 2}, index.data(), {y.data(), 3, 2, 2});
  EXPECT_EQ(y, (std::vector<double>{5, 6, 0, 0, 1, 2}));
  std::vector<float> narrow(6);
  cast<Cpu, double, float>(cpu(), 6, x.data(), narrow.data());
  EXPECT_EQ(narrow, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

/// One head over the shared slots of an utterance and the row's tail, as one softmax.
TEST(Kernels, DecodeIsASoftmaxOverSharedAndTail) {
  Rng rng(41);
  constexpr int64_t d = 3, max_tail = 4;
  const std::vector<double> shared = rounded_normals(rng, 5 * d), tail = rounded_normals(rng, 2 * max_tail * d);
  const std::vector<double> q = rounded_normals(rng, 2 * d);
  const std::vector<int32_t> offsets{0, 2, 5}, utterance{1, 0}, length{2, 4};
  std::vector<double> out(2 * d);
  DecodeCache<double> cache;
  cache.shared_k = cache.shared_v = {shared.data(), 5, d, d};
  cache.tail_k = cache.tail_v = {tail.data(), 2 * max_tail, d, d};
  cache.shared_offsets = offsets.data(), cache.row_utterance = utterance.data(), cache.tail_length = length.data();
  cache.max_tail = max_tail;
  attention_decode<Cpu, double>(cpu(), {1, 1, d, d, 0.7}, cache, {q.data(), 2, d, d}, {out.data(), 2, d, d});
  for (int64_t row = 0; row < 2; ++row) {
    std::vector<const double*> slots;
    const int32_t u = utterance[static_cast<size_t>(row)];
    for (int32_t s = offsets[static_cast<size_t>(u)]; s < offsets[static_cast<size_t>(u) + 1]; ++s)
      slots.push_back(&shared[static_cast<size_t>(s * d)]);
    for (int32_t s = 0; s < length[static_cast<size_t>(row)]; ++s)
      slots.push_back(&tail[static_cast<size_t>((row * max_tail + s) * d)]);
    double total = 0, sum[d] = {};
    for (const double* slot : slots) {
      double score = 0;
      for (int64_t i = 0; i < d; ++i) score += 0.7 * q[static_cast<size_t>(row * d + i)] * slot[i];
      total += std::exp(score);
      for (int64_t i = 0; i < d; ++i) sum[i] += std::exp(score) * slot[i];
    }
    for (int64_t i = 0; i < d; ++i) EXPECT_NEAR(out[static_cast<size_t>(row * d + i)], sum[i] / total, 1e-12);
  }
}

TEST(Kernels, MtlaAppendMergesInsideAChunk) {
  const std::vector<double> code{0.5, -1, 2};  // one column, chunks 0 .. 2
  std::vector<double> live(1), tail(4 * 2);
  int32_t position = 0, length = 0;
  double expected = 0;
  for (int step = 0; step < 6; ++step, ++position) {
    const double c = 1 + step, p = 0.1 * step, key = 10.0 + step;
    mtla_append<Cpu, double>(cpu(), 2, {&c, 1, 1, 1}, {&p, 1, 1, 1}, {code.data(), 3, 1, 1}, {&key, 1, 1, 1}, &position,
                             &length, 4, {live.data(), 1, 1, 1}, {tail.data(), 4, 2, 2});
    const double gate = 1 / (1 + std::exp(-code[static_cast<size_t>(step / 2)] * p));
    expected = step % 2 == 0 ? gate * c : expected + gate * c;
    ASSERT_EQ(length, step / 2 + 1);
    EXPECT_NEAR(live[0], expected, 1e-14);
    EXPECT_NEAR(tail[static_cast<size_t>(2 * (length - 1))], expected, 1e-14);
    EXPECT_EQ(tail[static_cast<size_t>(2 * (length - 1) + 1)], key);
  }
}

TEST(Kernels, TailAppendAndReorderMoveWholeSlots) {
  const std::vector<double> x{1, 2};
  std::vector<double> tail{0, 0, 0, 7, 7, 7};  // two hypotheses, three slots
  const std::vector<int32_t> lengths{1, 0};
  tail_append<Cpu, double>(cpu(), {x.data(), 2, 1, 1}, lengths.data(), 3, {tail.data(), 6, 1, 1});
  EXPECT_EQ(tail, (std::vector<double>{0, 1, 0, 2, 7, 7}));
  const std::vector<int32_t> parent{1, 0}, used{2, 1};
  std::vector<double> moved(6, -1);
  tail_reorder<Cpu, double>(cpu(), {tail.data(), 6, 1, 1}, parent.data(), used.data(), 2, 3, {moved.data(), 6, 1, 1});
  EXPECT_EQ(moved, (std::vector<double>{2, -1, -1, 0, 1, -1}));
}

struct Best {
  std::vector<double> values;
  std::vector<int32_t> tokens;
};

Best best(const std::vector<double>& logits, double temperature, int k, int forbidden, int eos, bool allow_eos,
          bool only_eos) {
  Best b{std::vector<double>(static_cast<size_t>(k)), std::vector<int32_t>(static_cast<size_t>(k))};
  const int64_t n = static_cast<int64_t>(logits.size());
  topk_log_softmax<Cpu, double>(cpu(), {logits.data(), 1, n, n}, temperature, k, forbidden, eos, allow_eos, only_eos,
                                b.values.data(), b.tokens.data());
  return b;
}

TEST(Kernels, TopKOrdersAndExcludes) {
  const std::vector<double> logits{3, 1, 3, 4, 2};
  EXPECT_EQ(best(logits, 1, 4, -1, 1, true, false).tokens, (std::vector<int32_t>{3, 0, 2, 4}));
  EXPECT_EQ(best(logits, 1, 3, 0, 3, false, false).tokens, (std::vector<int32_t>{2, 4, 1}));
  EXPECT_EQ(best(logits, 1, 3, -1, 4, true, true).tokens, (std::vector<int32_t>{4, -1, -1}));
  EXPECT_EQ(best(logits, 1, 6, -1, 1, true, false).tokens, (std::vector<int32_t>{3, 0, 2, 4, 1, -1}));
  EXPECT_EQ(best(logits, 1, 6, -1, 1, true, false).values[5], -std::numeric_limits<double>::infinity());
}

TEST(Kernels, TopKNormalisesOverTheWholeVocabulary) {
  const std::vector<double> logits{3, 1, 3, 4, 2};
  for (double temperature : {1.0, 0.5, 2.0}) {
    double total = 0;
    for (double x : logits) total += std::exp(x / temperature);
    // The excluded tokens keep their share of the probability.
    const Best b = best(logits, temperature, 2, 0, 3, false, false);
    EXPECT_NEAR(b.values[0], 3 / temperature - std::log(total), 1e-12);
    EXPECT_NEAR(b.values[1], 2 / temperature - std::log(total), 1e-12);
  }
}

TEST(Kernels, TopKReportsNaN) {
  EXPECT_TRUE(std::isnan(best({1, std::nan(""), 2}, 1, 1, -1, 0, true, false).values[0]));
}

}  // namespace
}  // namespace tactus::testing_ops
