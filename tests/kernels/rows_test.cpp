// Row kernels: layer norm, dropout, cross-entropy, embedding, convolution.
#include "kernels/conv1d.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/layer_norm.h"
#include "kernels/shared/dropout_draws.h"
#include "tests/kernels/kernel_testing.h"

namespace tactus::testing {
namespace {

template <class T>
class Rows : public ::testing::Test {};
TYPED_TEST_SUITE(Rows, Reals);

TYPED_TEST(Rows, LayerNorm) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  for (auto [rows, cols] : {std::array<int64_t, 2>{0, 8}, {1, 1}, {200, 33}, {3, 256}}) {
    Grid<T> x(rows, cols, 2), y(rows, cols, 1), gamma(1, cols), beta(1, cols), dy(rows, cols), dx(rows, cols, 3);
    x.random(1), gamma.random(2), beta.random(3), dy.random(4);
    std::vector<T> mean(rows), rstd(rows), dgamma(cols, T(1)), dbeta(cols, T(2));
    layer_norm_forward<Cpu, T>(ctx, x.in(), gamma.data(), beta.data(), 1e-5, y.mat(), mean.data(), rstd.data());
    layer_norm_backward<Cpu, T>(ctx, dy.in(), x.in(), gamma.data(), mean.data(), rstd.data(), dx.mat(), dgamma.data(),
                                dbeta.data());
    std::vector<double> m(rows, 0), s(rows, 0), sum(rows, 0), product(rows, 0), eg(cols, 1), eb(cols, 2);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) m[r] += x(r, c) / static_cast<double>(cols);
      for (int64_t c = 0; c < cols; ++c) s[r] += (x(r, c) - m[r]) * (x(r, c) - m[r]) / static_cast<double>(cols);
      s[r] = 1 / std::sqrt(s[r] + 1e-5);
      for (int64_t c = 0; c < cols; ++c) {
        const double normal = (x(r, c) - m[r]) * s[r], g = static_cast<double>(dy(r, c)) * gamma(0, c);
        sum[r] += g / static_cast<double>(cols), product[r] += g * normal / static_cast<double>(cols);
        eg[c] += dy(r, c) * normal, eb[c] += dy(r, c);
      }
    }
    expect_close(y, [&](int64_t r, int64_t c) { return (x(r, c) - m[r]) * s[r] * gamma(0, c) + beta(0, c); });
    // One column has no variance: rstd = eps^-1/2 magnifies what rounding leaves of the cancellation.
    expect_close(
        dx,
        [&](int64_t r, int64_t c) {
          return s[r] * (static_cast<double>(dy(r, c)) * gamma(0, c) - sum[r] - (x(r, c) - m[r]) * s[r] * product[r]);
        },
        5 * tolerance<T>);
    for (int64_t c = 0; c < cols; ++c) {
      EXPECT_NEAR(dgamma[c], eg[c], 10 * tolerance<T>);
      EXPECT_NEAR(dbeta[c], eb[c], 10 * tolerance<T>);
    }
  }
}

TEST(DropoutDraws, EqualKeepBits) {
  const DropoutKey key{0x123456789abcdef0ull, 0.3f};
  for (auto [rows, groups] : {std::array<int64_t, 2>{1, 1}, {5, 7}, {64, 8}, {3, 16}, {1, 40}}) {
    std::vector<uint16_t> draws(rows * groups * 8);
    dropout_draws(key, 11, 1000, rows, 3, 5, groups, draws.data());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t g = 0; g < groups; ++g) {
        uint32_t bits = 0;
        for (int j = 0; j < 8; ++j)
          bits |= static_cast<uint32_t>(draws[(r * groups + g) * 8 + j] >= key.threshold()) << j;
        ASSERT_EQ(bits, keep_bits(key, 11, static_cast<uint32_t>(1000 + r), 3, static_cast<uint32_t>(5 + g)));
      }
    }
  }
}

bool kept(const DropoutKey& key, const Segments& segments, int64_t r, int64_t c) {
  int64_t s = 0;
  while (r >= segments.offsets()[s + 1]) ++s;
  const uint32_t bits = keep_bits(key, segments.utterances()[s], static_cast<uint32_t>(r - segments.begin(s)), 0,
                                  static_cast<uint32_t>(c / 8));
  return (bits >> (c % 8)) & 1;
}

TYPED_TEST(Rows, Dropout) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  const Segments segments(ctx, {3, 0, 70, 1}, {5, 6, 900, 2});
  const DropoutKey key{77, 0.4f}, off{}, all{77, 1.0f};
  for (int64_t cols : {1, 13, 600}) {
    Grid<T> x(74, cols, 1), residual(74, cols, 2), y(74, cols), dy(74, cols), dx(74, cols);
    x.random(1), residual.random(2), dy.random(3);
    dropout_add<Cpu, T>(ctx, x.in(), residual.in(), key, segments.view(), y.mat());
    expect_close(y, [&](int64_t r, int64_t c) {
      return (kept(key, segments, r, c) ? x(r, c) * key.scale() : 0.0) + residual(r, c);
    });
    dropout_add<Cpu, T>(ctx, x.in(), {}, key, segments.view(), y.mat());
    expect_close(y, [&](int64_t r, int64_t c) { return kept(key, segments, r, c) ? x(r, c) * key.scale() : 0.0; });
    dropout_add<Cpu, T>(ctx, x.in(), {}, all, segments.view(), y.mat());
    expect_close(y, [&](int64_t, int64_t) { return 0.0; });
    dropout_add<Cpu, T>(ctx, x.in(), residual.in(), off, segments.view(), y.mat());
    expect_close(y, [&](int64_t r, int64_t c) { return static_cast<double>(x(r, c)) + residual(r, c); });
    dropout_add<Cpu, T>(ctx, x.in(), {}, off, segments.view(), y.mat());
    expect_close(
        y, [&](int64_t r, int64_t c) { return static_cast<double>(x(r, c)); }, 0);
    relu_dropout_forward<Cpu, T>(ctx, x.in(), key, segments.view(), y.mat());
    expect_close(y, [&](int64_t r, int64_t c) {
      return kept(key, segments, r, c) && x(r, c) > 0 ? x(r, c) * key.scale() : 0.0;
    });
    relu_dropout_backward<Cpu, T>(ctx, dy.in(), y.in(), key, dx.mat());
    expect_close(dx, [&](int64_t r, int64_t c) {
      return kept(key, segments, r, c) && x(r, c) > 0 ? dy(r, c) * key.scale() : 0.0;
    });
    relu_dropout_forward<Cpu, T>(ctx, x.in(), off, segments.view(), y.mat());
    expect_close(y, [&](int64_t r, int64_t c) { return std::max(0.0, static_cast<double>(x(r, c))); });
  }
}

TYPED_TEST(Rows, CrossEntropy) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  for (int64_t vocabulary : {1, 2, 35, 1000}) {
    for (double smoothing : {0.0, 0.1}) {
      const int64_t rows = 40;
      Grid<T> x(rows, vocabulary, 1), dx(rows, vocabulary, 2), weight(1, rows);
      x.random(1, 3), weight.random(2);
      std::vector<int32_t> targets(rows), correct(rows);
      for (int64_t r = 0; r < rows; ++r) targets[r] = r == 7 ? -1 : static_cast<int32_t>(r * 13 % vocabulary);
      if (vocabulary > 2) {
        x(3, targets[3]) = 50;
        x(4, targets[4]) = x(4, targets[4] + 1) = 50;  // first of two equal
        x(5, targets[5]) = x(5, targets[5] - 1) = 50;  // second of two equal
      }
      std::vector<T> loss(rows), nll(rows), lse(rows);
      const T grad = T(0.5);
      cross_entropy_forward<Cpu, T>(ctx, x.in(), targets.data(), smoothing, weight.data(), loss.data(), nll.data(),
                                    lse.data(), correct.data());
      cross_entropy_backward<Cpu, T>(ctx, x.in(), targets.data(), smoothing, weight.data(), lse.data(), &grad,
                                     dx.mat());
      const double each = vocabulary > 1 ? smoothing / static_cast<double>(vocabulary - 1) : 0;
      for (int64_t r = 0; r < rows; ++r) {
        if (targets[r] < 0) {
          EXPECT_TRUE(loss[r] == 0 && nll[r] == 0 && lse[r] == 0 && correct[r] == 0);
          continue;
        }
        double top = -1e300, sum = 0, all = 0;
        for (int64_t v = 0; v < vocabulary; ++v) top = std::max(top, static_cast<double>(x(r, v)));
        for (int64_t v = 0; v < vocabulary; ++v) sum += std::exp(x(r, v) - top);
        const double total = top + std::log(sum);
        for (int64_t v = 0; v < vocabulary; ++v) all += total - x(r, v);
        const double expected_nll = total - x(r, targets[r]);
        EXPECT_NEAR(lse[r], total, 5 * tolerance<T>);
        EXPECT_NEAR(nll[r], expected_nll, 5 * tolerance<T> * std::max(1.0, expected_nll));
        const double expected = weight(0, r) * ((1 - smoothing - each) * expected_nll + each * all);
        EXPECT_NEAR(loss[r], expected, 10 * tolerance<T> * std::max(1.0, std::abs(expected)));
      }
      if (vocabulary > 2) {
        EXPECT_EQ((std::vector<int32_t>{correct[3], correct[4], correct[5]}), (std::vector<int32_t>{1, 1, 0}));
      }
      expect_close(dx, [&](int64_t r, int64_t v) {
        if (targets[r] < 0) return 0.0;
        if (vocabulary == 1) return 0.0;
        const double q = v == targets[r] ? 1 - smoothing : each;
        double sum = 0;
        for (int64_t u = 0; u < vocabulary; ++u) sum += std::exp(static_cast<double>(x(r, u)) - x(r, v));
        return 0.5 * weight(0, r) * (1 / sum - q);
      });
    }
  }
}

TYPED_TEST(Rows, Embedding) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  const std::vector<int32_t> ids = {4, 0, 4, 9, 0, 4};
  const TokenIndex index = TokenIndex::make(ctx, ids, 10);
  EXPECT_EQ(index.unique, 3);
  EXPECT_EQ(ctx.download<int32_t>(index.order), (std::vector<int32_t>{1, 4, 0, 2, 5, 3}));
  EXPECT_EQ(ctx.download<int32_t>(index.starts), (std::vector<int32_t>{0, 2, 5, 6}));
  Grid<T> table(10, 300, 1), y(6, 300, 2), dy(6, 300), dtable(10, 300, 1);
  table.random(1), dy.random(2), dtable.random(3);
  const Grid<T> before = dtable;
  embedding_forward<Cpu, T>(ctx, table.in(), index, 3, y.mat());
  expect_close(y, [&](int64_t r, int64_t c) { return 3.0 * table(ids[r], c); });
  embedding_backward<Cpu, T>(ctx, dy.in(), index, 3, dtable.mat());
  expect_close(dtable, [&](int64_t v, int64_t c) {
    double sum = before(v, c);
    for (int64_t r = 0; r < 6; ++r) sum += ids[r] == v ? 3.0 * dy(r, c) : 0.0;
    return sum;
  });
  EXPECT_THROW(TokenIndex::make(ctx, {3, 10}, 10), DataError);
  EXPECT_THROW(TokenIndex::make(ctx, {-1}, 10), DataError);
  const TokenIndex none = TokenIndex::make(ctx, {}, 10);
  embedding_forward<Cpu, T>(ctx, table.in(), none, 1, Grid<T>(0, 300).mat());
  EXPECT_EQ(none.unique, 0);
}

TYPED_TEST(Rows, Convolution) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  const std::vector<int64_t> lengths = {7, 0, 1, 12, 2};
  for (auto [kernel, stride, pad] : {std::array<int, 3>{5, 2, 2}, {3, 1, 1}, {3, 3, 0}, {1, 2, 0}, {2, 3, 1}}) {
    std::vector<int64_t> out_lengths;
    for (int64_t n : lengths) out_lengths.push_back(conv1d_length(n, kernel, stride, pad));
    const Segments in(ctx, lengths), out(ctx, out_lengths);
    const int64_t channels = 3;
    Grid<T> x(in.rows(), channels, 1), columns(out.rows(), kernel * channels, 2),
        dcolumns(out.rows(), kernel * channels), dx(in.rows(), channels, 1);
    x.random(1), dcolumns.random(2);
    unfold<Cpu, T>(ctx, x.in(), in.view(), out.view(), kernel, stride, pad, columns.mat());
    fold<Cpu, T>(ctx, dcolumns.in(), in.view(), out.view(), kernel, stride, pad, dx.mat());
    Grid<T> expected(out.rows(), kernel * channels), back(in.rows(), channels);
    expected.fill(0), back.fill(0);
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (int64_t t = 0; t < out.length(s); ++t) {
        for (int64_t j = 0; j < kernel; ++j) {
          const int64_t at = t * stride + j - pad;
          if (at < 0 || at >= in.length(s)) continue;
          for (int64_t c = 0; c < channels; ++c) {
            expected(out.begin(s) + t, j * channels + c) = x(in.begin(s) + at, c);
            back(in.begin(s) + at, c) += dcolumns(out.begin(s) + t, j * channels + c);
          }
        }
      }
    }
    expect_same(columns, expected);
    expect_same(dx, back);
  }
}

}  // namespace
}  // namespace tactus::testing
