#include "kernels/attention/mtla.h"

#include "tests/kernels/kernel_testing.h"

namespace tactus::testing {
namespace {

template <class T>
struct Problem {
  Context ctx = Context::cpu(2);
  Segments prompt_segments, own_segments;
  int stride;
  Grid<T> pc, pp, oc, op, code, psum, osum, pdsum, odsum, pdc, pdp, odc, odp, dcode;
  std::vector<T> pgate, ogate;
  bool has_prompt;

  Problem(const std::vector<int64_t>& prompt, const std::vector<int64_t>& own, int s, int64_t r, int64_t h)
      : prompt_segments(ctx, prompt.empty() ? std::vector<int64_t>(own.size(), 0) : prompt),
        own_segments(ctx, own),
        stride(s),
        pc(prompt_segments.rows(), r, 1),
        pp(prompt_segments.rows(), h, 2),
        oc(own_segments.rows(), r, 2),
        op(own_segments.rows(), h, 1),
        code(12, h, 1),
        psum(pc.rows(), r, 1),
        osum(oc.rows(), r, 3),
        pdsum(pc.rows(), r),
        odsum(oc.rows(), r, 1),
        pdc(pc.rows(), r),
        pdp(pc.rows(), h, 1),
        odc(oc.rows(), r, 2),
        odp(oc.rows(), h),
        dcode(12, h),
        pgate(pc.rows()),
        ogate(oc.rows()),
        has_prompt(!prompt.empty()) {
    pc.random(1), pp.random(2), oc.random(3), op.random(4), code.random(5), pdsum.random(6), odsum.random(7);
  }
  KeyLayout layout() const { return {has_prompt ? prompt_segments.view() : SegmentsView{}, own_segments.view()}; }
  void forward() {
    gate_sum_forward<Cpu, T>(ctx, layout(), stride, {pc.in(), pp.in()}, {oc.in(), op.in()}, code.in(),
                             {psum.mat(), pgate.data()}, {osum.mat(), ogate.data()});
  }
  void backward() {
    gate_sum_backward<Cpu, T>(ctx, layout(), stride, {pc.in(), pp.in()}, {oc.in(), op.in()}, code.in(), pgate.data(),
                              ogate.data(), pdsum.in(), odsum.in(), {pdc.mat(), pdp.mat()}, {odc.mat(), odp.mat()},
                              dcode.mat());
  }
  double objective() {
    forward();
    double sum = 0;
    for (int64_t r = 0; r < psum.rows(); ++r) {
      for (int64_t c = 0; c < psum.cols(); ++c) sum += static_cast<double>(psum(r, c)) * pdsum(r, c);
    }
    for (int64_t r = 0; r < osum.rows(); ++r) {
      for (int64_t c = 0; c < osum.cols(); ++c) sum += static_cast<double>(osum(r, c)) * odsum(r, c);
    }
    return sum;
  }
};

struct Lengths {
  std::vector<int64_t> prompt, own;
  int stride;
};
const Lengths kCases[] = {
    {{}, {7, 0, 1, 9}, 2}, {{5, 0, 3}, {6, 4, 0}, 3}, {{1, 2, 4}, {8, 7, 2}, 4}, {{2, 3}, {5, 4}, 1}};

template <class T>
class GateSum : public ::testing::Test {};
TYPED_TEST_SUITE(GateSum, Reals);

TYPED_TEST(GateSum, FollowsItsFormula) {
  using T = TypeParam;
  for (const Lengths& l : kCases) {
    Problem<T> p(l.prompt, l.own, l.stride, 5, 3);
    p.forward();
    Grid<T> prompt(p.psum.rows(), 5), own(p.osum.rows(), 5);
    for (int64_t s = 0; s < p.own_segments.count(); ++s) {
      const int64_t P = p.prompt_segments.length(s), total = P + p.own_segments.length(s);
      for (int64_t t = 0; t < total; ++t) {
        std::vector<double> sum(5, 0.0);
        for (int64_t j = t / l.stride * l.stride; j <= t; ++j) {
          const bool in_prompt = j < P;
          const int64_t row = in_prompt ? p.prompt_segments.begin(s) + j : p.own_segments.begin(s) + j - P;
          double logit = 0;
          for (int64_t k = 0; k < 3; ++k)
            logit += p.code(j / l.stride, k) * static_cast<double>((in_prompt ? p.pp : p.op)(row, k));
          for (int64_t k = 0; k < 5; ++k) sum[k] += (in_prompt ? p.pc : p.oc)(row, k) / (1 + std::exp(-logit));
        }
        for (int64_t k = 0; k < 5; ++k) {
          if (t < P) {
            prompt(p.prompt_segments.begin(s) + t, k) = static_cast<T>(sum[k]);
          } else {
            own(p.own_segments.begin(s) + t - P, k) = static_cast<T>(sum[k]);
          }
        }
      }
    }
    expect_same(p.psum, prompt);
    expect_same(p.osum, own);
  }
}

TEST(GateSumGradients, EqualFiniteDifferences) {
  for (const Lengths& l : kCases) {
    Problem<double> p(l.prompt, l.own, l.stride, 3, 2);
    p.forward(), p.backward();
    auto check = [&](Grid<double>& x, const Grid<double>& dx) {
      Grid<double> expected(x.rows(), x.cols());
      for (int64_t r = 0; r < x.rows(); ++r) {
        for (int64_t c = 0; c < x.cols(); ++c) expected(r, c) = slope(x(r, c), [&] { return p.objective(); });
      }
      expect_same(dx, expected, 1e-8);
    };
    check(p.pc, p.pdc), check(p.pp, p.pdp), check(p.oc, p.odc), check(p.op, p.odp), check(p.code, p.dcode);
  }
}

TEST(ChunkCode, InterleavesSinesAndCosines) {
  const Context ctx = Context::cpu(1);
  const std::vector<double> code = ctx.download<double>(chunk_code(ctx, 3, 4, DType::f64));
  const double slow = std::pow(10000.0, -0.5);
  const double expected[] = {0,
                             1,
                             0,
                             1,
                             std::sin(1.0),
                             std::cos(1.0),
                             std::sin(slow),
                             std::cos(slow),
                             std::sin(2.0),
                             std::cos(2.0),
                             std::sin(2 * slow),
                             std::cos(2 * slow)};
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(code[i], expected[i], 1e-15);
  EXPECT_THROW(chunk_code(ctx, 3, 5, DType::f64), ShapeError);
}

TYPED_TEST(GateSum, TooFewChunkCodesAreAnError) {
  Problem<TypeParam> p({}, {13}, 1, 3, 2);
  EXPECT_THROW(p.forward(), ShapeError);
}

}  // namespace
}  // namespace tactus::testing
