#include "kernels/ctc.h"

#include <functional>

#include "tests/kernels/kernel_testing.h"

namespace tactus::testing {
namespace {

/// p(labels | logits) by enumeration of every sequence of V symbols over the frames.
double brute_force(const Grid<double>& logits, int64_t begin, int64_t frames, const std::vector<int32_t>& labels,
                   int blank) {
  const int64_t vocabulary = logits.cols();
  double total = 0;
  std::function<void(int64_t, int32_t, size_t, double)> extend = [&](int64_t t, int32_t last, size_t done, double p) {
    if (t == frames) {
      total += done == labels.size() ? p : 0;
      return;
    }
    double sum = 0;
    for (int64_t v = 0; v < vocabulary; ++v) sum += std::exp(logits(begin + t, v));
    for (int32_t v = 0; v < vocabulary; ++v) {
      const double q = p * std::exp(logits(begin + t, v)) / sum;
      if (v == blank || v == last) {
        extend(t + 1, v, done, q);
      } else if (done < labels.size() && labels[done] == v) {
        extend(t + 1, v, done + 1, q);
      }
    }
  };
  extend(0, -1, 0, 1);
  return total;
}

struct Batch {
  std::vector<int64_t> frames, lengths;
  std::vector<int32_t> labels;
};
Batch batch() {
  // Plain; repeats that just fit; repeats that do not; too few frames; empty label; no frames; both empty; one frame.
  return {{6, 5, 3, 2, 4, 0, 0, 1}, {3, 3, 3, 3, 0, 2, 0, 1}, {1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 2, 3, 2, 1, 3}};
}

template <class T>
class Ctc : public ::testing::Test {};
TYPED_TEST_SUITE(Ctc, Reals);

TYPED_TEST(Ctc, EqualsEnumeration) {
  using T = TypeParam;
  const Batch b = batch();
  for (int blank : {0, 3}) {
    const Context ctx = Context::cpu(2);
    const Segments frames(ctx, b.frames), targets(ctx, b.lengths);
    std::vector<int32_t> labels = b.labels;
    for (int32_t& l : labels) l = blank == 0 ? l : l - 1;
    Grid<double> exact(frames.rows(), 4);
    exact.random(1, 2);
    Grid<T> logits(frames.rows(), 4, 3);
    for (int64_t r = 0; r < frames.rows(); ++r) {
      for (int64_t v = 0; v < 4; ++v) exact(r, v) = logits(r, v) = static_cast<T>(exact(r, v));
    }
    for (bool zero : {false, true}) {
      std::vector<T> loss(frames.count());
      CtcSaved saved;
      ctc_forward<Cpu, T>(ctx, logits.in(), frames, targets, labels.data(), blank, zero, loss.data(), saved);
      for (int64_t i = 0; i < frames.count(); ++i) {
        const std::vector<int32_t> own(labels.begin() + targets.begin(i),
                                       labels.begin() + targets.begin(i) + targets.length(i));
        const double p = b.frames[i] == 0 ? 0 : brute_force(exact, frames.begin(i), b.frames[i], own, blank);
        if (p == 0) {
          EXPECT_EQ(loss[i], zero ? T(0) : std::numeric_limits<T>::infinity()) << "utterance " << i;
        } else {
          EXPECT_NEAR(loss[i], -std::log(p), 10 * tolerance<T>) << "utterance " << i;
        }
      }
      EXPECT_EQ(std::isfinite(loss[2]), zero);
      EXPECT_GT(loss[1], 0);
    }
  }
}

TEST(CtcGradients, EqualFiniteDifferences) {
  const Batch b = batch();
  const Context ctx = Context::cpu(1);
  const Segments frames(ctx, b.frames), targets(ctx, b.lengths);
  Grid<double> logits(frames.rows(), 4, 1), dlogits(frames.rows(), 4, 2);
  logits.random(2, 2);
  const double grad = -0.75;
  std::vector<double> loss(frames.count());
  CtcSaved saved;
  auto objective = [&] {
    CtcSaved other;
    std::vector<double> losses(frames.count());
    ctc_forward<Cpu, double>(ctx, logits.in(), frames, targets, b.labels.data(), 0, true, losses.data(), other);
    double sum = 0;
    for (double l : losses) sum += grad * l;
    return sum;
  };
  ctc_forward<Cpu, double>(ctx, logits.in(), frames, targets, b.labels.data(), 0, true, loss.data(), saved);
  ctc_backward<Cpu, double>(ctx, logits.in(), frames, targets, b.labels.data(), 0, loss.data(), saved, &grad,
                            dlogits.mat());
  Grid<double> expected(frames.rows(), 4);
  for (int64_t r = 0; r < frames.rows(); ++r) {
    for (int64_t v = 0; v < 4; ++v) expected(r, v) = slope(logits(r, v), objective);
  }
  expect_same(dlogits, expected, 1e-8);
}

TYPED_TEST(Ctc, LongUtterancesKeepTheirPosteriors) {
  // Rows of softmax - posterior sum to 0; with 400 frames this fails when the recursions lose digits.
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  const Segments frames(ctx, {400, 30}), targets(ctx, {60, 20});
  std::vector<int32_t> labels(80);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(1 + i * i % 49);
  Grid<T> logits(430, 50), dlogits(430, 50);
  logits.random(3, 2);
  std::vector<T> loss(2);
  CtcSaved saved;
  const T grad = 1;
  ctc_forward<Cpu, T>(ctx, logits.in(), frames, targets, labels.data(), 0, false, loss.data(), saved);
  ctc_backward<Cpu, T>(ctx, logits.in(), frames, targets, labels.data(), 0, loss.data(), saved, &grad, dlogits.mat());
  for (int64_t r = 0; r < 430; ++r) {
    double sum = 0;
    for (int64_t v = 0; v < 50; ++v) sum += dlogits(r, v);
    EXPECT_NEAR(sum, 0, (std::is_same_v<T, double> ? 1e-9 : 2e-3)) << r;
  }
}

TYPED_TEST(Ctc, NanShowsAndBadLabelsAreErrors) {
  using T = TypeParam;
  const Context ctx = Context::cpu(1);
  const Segments frames(ctx, {3, 3}), targets(ctx, {1, 1});
  Grid<T> logits(6, 3);
  logits.random(1);
  logits(1, 0) = nan_of<T>;
  const int32_t labels[] = {1, 2}, outside[] = {1, 3};
  std::vector<T> loss(2);
  CtcSaved saved;
  ctc_forward<Cpu, T>(ctx, logits.in(), frames, targets, labels, 0, true, loss.data(), saved);
  EXPECT_TRUE(std::isnan(loss[0]));
  EXPECT_TRUE(std::isfinite(loss[1]));
  EXPECT_THROW((ctc_forward<Cpu, T>(ctx, logits.in(), frames, targets, outside, 0, true, loss.data(), saved)),
               ShapeError);
  EXPECT_THROW((ctc_forward<Cpu, T>(ctx, logits.in(), frames, targets, labels, 2, true, loss.data(), saved)),
               ShapeError);
}

}  // namespace
}  // namespace tactus::testing
