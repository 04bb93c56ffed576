// Attention against a dense softmax written from the definition of its columns, and its gradients against finite
// differences.
#include "kernels/attention/attention.h"

#include "tests/kernels/kernel_testing.h"

namespace tactus::testing {
namespace {

struct Case {
  const char* name;
  std::vector<int64_t> prompt, own;  // lengths; no prompt at all when `prompt` is empty
  AttentionShape shape;
};

AttentionShape shape_of(int heads, int kv_heads, int d_key, int d_shared, int d_value, int stride, bool causal,
                        float p = 0) {
  AttentionShape s;
  s.heads = heads, s.kv_heads = kv_heads, s.d_key = d_key, s.d_shared = d_shared, s.d_value = d_value;
  s.stride = stride, s.causal = causal, s.scale = 0.4, s.dropout = {0xfeedull, p};
  return s;
}

std::vector<Case> cases() {
  return {
      {"causal", {}, {5, 1, 0, 7}, shape_of(2, 2, 4, 0, 3, 1, true)},
      {"full", {}, {5, 1, 0, 7}, shape_of(2, 1, 4, 0, 3, 1, false)},
      {"stride 2", {3, 0, 4}, {4, 5, 1}, shape_of(4, 2, 3, 2, 4, 2, true)},
      {"stride 3, full", {3, 1, 0}, {4, 5, 2}, shape_of(2, 2, 3, 2, 4, 3, false)},
      {"stride 4, dropout", {5, 2, 7}, {6, 1, 3}, shape_of(4, 2, 3, 2, 4, 4, true, 0.4f)},
      {"stride 3, no prompt", {}, {8, 2}, shape_of(2, 2, 5, 0, 4, 3, true, 0.3f)},
      {"prompt without own rows", {4, 3}, {0, 2}, shape_of(2, 1, 3, 1, 2, 1, true)},
      {"full, dropout", {2, 0}, {9, 3}, shape_of(2, 2, 3, 0, 3, 1, false, 0.5f)},
      {"several tiles", {}, {150, 70}, shape_of(2, 2, 8, 0, 8, 1, true, 0.1f)},
      {"several tiles, stride 2", {131, 64}, {140, 129}, shape_of(2, 1, 4, 4, 8, 2, true, 0.2f)},
      {"several tiles, full", {10, 0}, {130, 65}, shape_of(2, 2, 8, 0, 4, 1, false, 0.2f)},
  };
}

/// All arguments and results of one case.
template <class T>
struct Problem {
  Context ctx;
  AttentionShape shape;
  Segments prompt_segments, own_segments;
  bool has_prompt;
  Grid<T> q, pk, ps, pv, ok, os, ov, out, dout, dq, dpk, dps, dpv, dok, dos, dov;
  std::vector<T> lse;

  Problem(const Case& c, int threads)
      : ctx(Context::cpu(threads)),
        shape(c.shape),
        prompt_segments(ctx, c.prompt.empty() ? std::vector<int64_t>(c.own.size(), 0) : c.prompt),
        own_segments(ctx, c.own, ids(c.own.size())),
        has_prompt(!c.prompt.empty()),
        q(own(), shape.heads * (shape.d_key + shape.d_shared), 1),
        pk(prompt(), shape.kv_heads * shape.d_key, 2),
        ps(prompt(), shape.d_shared, 1),
        pv(prompt(), shape.kv_heads * shape.d_value, 3),
        ok(own(), shape.kv_heads * shape.d_key, 1),
        os(own(), shape.d_shared, 2),
        ov(own(), shape.kv_heads * shape.d_value),
        out(own(), shape.heads * shape.d_value, 3),
        dout(own(), shape.heads * shape.d_value, 1),
        dq(q.rows(), q.cols(), 2),
        dpk(pk.rows(), pk.cols()),
        dps(ps.rows(), ps.cols(), 1),
        dpv(pv.rows(), pv.cols()),
        dok(ok.rows(), ok.cols(), 4),
        dos(os.rows(), os.cols()),
        dov(ov.rows(), ov.cols(), 1),
        lse(own() * shape.heads) {
    q.random(1), pk.random(2), ps.random(3), pv.random(4), ok.random(5), os.random(6), ov.random(7), dout.random(8);
  }
  static std::vector<int32_t> ids(size_t n) {
    std::vector<int32_t> v;
    for (size_t i = 0; i < n; ++i) v.push_back(static_cast<int32_t>(100 - 7 * i));
    return v;
  }
  int64_t own() const { return own_segments.rows(); }
  int64_t prompt() const { return prompt_segments.rows(); }
  KeyLayout layout() const { return {has_prompt ? prompt_segments.view() : SegmentsView{}, own_segments.view()}; }
  KeyRows<const T> prompt_rows() const { return {pk.in(), ps.in(), pv.in()}; }
  KeyRows<const T> own_rows() const { return {ok.in(), os.in(), ov.in()}; }
  void forward() {
    attention_forward<Cpu, T>(ctx, shape, layout(), q.in(), prompt_rows(), own_rows(), out.mat(), lse.data());
  }
  void backward() {
    attention_backward<Cpu, T>(ctx, shape, layout(), q.in(), prompt_rows(), own_rows(), out.in(), lse.data(), dout.in(),
                               dq.mat(), {dpk.mat(), dps.mat(), dpv.mat()}, {dok.mat(), dos.mat(), dov.mat()});
  }
  /// sum of dout * out, the function whose gradients backward computes.
  double objective() {
    forward();
    double sum = 0;
    for (int64_t r = 0; r < out.rows(); ++r) {
      for (int64_t c = 0; c < out.cols(); ++c) sum += static_cast<double>(dout(r, c)) * out(r, c);
    }
    return sum;
  }
};

/// Key rows and dropout columns that query t of a sequence of P + n rows sees.
std::vector<std::pair<int64_t, int64_t>> columns_of(const AttentionShape& s, int64_t P, int64_t n, int64_t t) {
  std::vector<std::pair<int64_t, int64_t>> columns;
  const int64_t i = P + t, total = P + n;
  if (!s.causal) {
    for (int64_t c = 0; c * s.stride < total; ++c) columns.emplace_back(std::min(s.stride * (c + 1), total) - 1, c);
    return columns;
  }
  for (int64_t j = 0; j <= i; ++j) {
    if (j % s.stride == s.stride - 1 || j == i) columns.emplace_back(j, j / s.stride);
  }
  return columns;
}

template <class T>
void expect_dense(Problem<T>& p) {
  const AttentionShape& s = p.shape;
  Grid<T> expected(p.out.rows(), p.out.cols());
  for (int64_t seq = 0; seq < p.own_segments.count(); ++seq) {
    const int64_t P = p.prompt_segments.length(seq), n = p.own_segments.length(seq);
    for (int64_t t = 0; t < n; ++t) {
      const int64_t row = p.own_segments.begin(seq) + t;
      const auto columns = columns_of(s, P, n, t);
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t kv = h / (s.heads / s.kv_heads), wide = s.d_key + s.d_shared;
        std::vector<double> scores, values(s.d_value, 0.0);
        double top = -1e300, sum = 0;
        auto at = [&](const Grid<T>& prompt, const Grid<T>& own, int64_t j, int64_t c) -> double {
          return j < P ? prompt(p.prompt_segments.begin(seq) + j, c) : own(p.own_segments.begin(seq) + j - P, c);
        };
        for (auto [j, column] : columns) {
          double score = 0;
          for (int64_t c = 0; c < s.d_key; ++c) score += p.q(row, h * wide + c) * at(p.pk, p.ok, j, kv * s.d_key + c);
          for (int64_t c = 0; c < s.d_shared; ++c) score += p.q(row, h * wide + s.d_key + c) * at(p.ps, p.os, j, c);
          scores.push_back(s.scale * score);
          top = std::max(top, scores.back());
        }
        for (double score : scores) sum += std::exp(score - top);
        for (size_t k = 0; k < columns.size(); ++k) {
          double weight = std::exp(scores[k] - top) / sum;
          const uint32_t column = static_cast<uint32_t>(columns[k].second);
          if (s.dropout.active()) {
            const uint32_t bits = keep_bits(s.dropout, static_cast<uint32_t>(p.own_segments.utterances()[seq]),
                                            static_cast<uint32_t>(t), static_cast<uint32_t>(h), column / 8);
            weight *= (bits >> (column % 8)) & 1 ? s.dropout.scale() : 0.0;
          }
          for (int64_t c = 0; c < s.d_value; ++c)
            values[c] += weight * at(p.pv, p.ov, columns[k].first, kv * s.d_value + c);
        }
        for (int64_t c = 0; c < s.d_value; ++c) expected(row, h * s.d_value + c) = static_cast<T>(values[c]);
        ASSERT_NEAR(p.lse[row * s.heads + h], top + std::log(sum), 5 * tolerance<T>);
      }
    }
  }
  expect_same(p.out, expected);
}

template <class T>
class Attention : public ::testing::Test {};
TYPED_TEST_SUITE(Attention, Reals);

TYPED_TEST(Attention, EqualsDenseSoftmax) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Problem<TypeParam> p(c, 2);
    p.forward();
    expect_dense(p);
  }
}

TYPED_TEST(Attention, DoesNotDependOnThreads) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Problem<TypeParam> one(c, 1), three(c, 3);
    one.forward(), one.backward(), three.forward(), three.backward();
    expect_same(three.out, one.out, 0);
    expect_same(three.dq, one.dq, 0);
    expect_same(three.dok, one.dok, 0), expect_same(three.dos, one.dos, 0), expect_same(three.dov, one.dov, 0);
    expect_same(three.dpk, one.dpk, 0), expect_same(three.dps, one.dps, 0), expect_same(three.dpv, one.dpv, 0);
  }
}

void expect_slopes(Problem<double>& p, Grid<double>& x, const Grid<double>& dx, const char* name) {
  // At most about 40 entries of each argument, spread over it.
  const int64_t entries = x.rows() * x.cols();
  const int64_t step = std::max<int64_t>(1, entries / 37);
  for (int64_t i = 0; i < entries; i += step) {
    double& value = x(i / x.cols(), i % x.cols());
    const double expected = slope(value, [&] { return p.objective(); });
    EXPECT_NEAR(dx(i / x.cols(), i % x.cols()), expected, 1e-7 * std::max(1.0, std::abs(expected)))
        << name << " entry " << i;
  }
  EXPECT_TRUE(dx.gaps_intact()) << name;
}

TEST(AttentionGradients, EqualFiniteDifferences) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Problem<double> p(c, 1);
    p.forward();
    p.backward();
    expect_slopes(p, p.q, p.dq, "q");
    expect_slopes(p, p.ok, p.dok, "own key"), expect_slopes(p, p.os, p.dos, "own shared"),
        expect_slopes(p, p.ov, p.dov, "own value");
    expect_slopes(p, p.pk, p.dpk, "prompt key"), expect_slopes(p, p.ps, p.dps, "prompt shared");
    expect_slopes(p, p.pv, p.dpv, "prompt value");
  }
}

TYPED_TEST(Attention, WrongShapesAreNamed) {
  Problem<TypeParam> p({"", {}, {3}, shape_of(2, 2, 4, 0, 3, 1, true)}, 1);
  p.shape.d_value = 4;
  EXPECT_THROW(p.forward(), ShapeError);
  p.shape = shape_of(3, 2, 4, 0, 3, 1, true);
  EXPECT_THROW(p.forward(), ShapeError);
}

TYPED_TEST(Attention, NanReachesTheQueriesThatSeeIt) {
  using T = TypeParam;
  Problem<T> p({"", {}, {6}, shape_of(1, 1, 2, 0, 2, 1, true)}, 1);
  p.ok(3, 0) = nan_of<T>;
  p.forward();
  for (int64_t t = 0; t < 6; ++t) EXPECT_EQ(std::isnan(p.out(t, 0)), t >= 3) << t;
}

}  // namespace
}  // namespace tactus::testing
