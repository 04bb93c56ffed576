#include "kernels/attention/attention.h"
#include "kernels/attention/mtla.h"
#include "kernels/decode/attention_decode.h"
#include "tests/kernels/kernel_testing.h"

namespace tactus::testing {
namespace {

template <class T>
class Decode : public ::testing::Test {};
TYPED_TEST_SUITE(Decode, Reals);

TYPED_TEST(Decode, AttendsToSharedSlotsThenTail) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  const DecodeShape shape{.heads = 4, .kv_heads = 2, .d_key = 5, .d_value = 3, .scale = 0.6};
  const int32_t offsets[] = {0, 150, 150, 152}, utterance[] = {0, 0, 1, 2, 1}, length[] = {3, 130, 1, 4, 0};
  constexpr int64_t rows = 5, max_tail = 140;
  Grid<T> sk(152, 10, 1), sv(152, 6, 2), tk(rows * max_tail, 10), tv(rows * max_tail, 6, 1), q(rows, 20, 3),
      out(rows, 12, 1);
  sk.random(1), sv.random(2), tk.random(3), tv.random(4), q.random(5);
  const DecodeCache<T> cache{sk.in(), sv.in(), offsets, utterance, tk.in(), tv.in(), length, max_tail};
  attention_decode<Cpu, T>(ctx, shape, cache, q.in(), out.mat());
  expect_close(out, [&](int64_t r, int64_t c) {
    const int64_t h = c / 3, kv = h / 2;
    double sum = 0, value = 0;
    auto add = [&](const Grid<T>& k, const Grid<T>& v, int64_t slot) {
      double score = 0;
      for (int64_t i = 0; i < 5; ++i) score += static_cast<double>(q(r, h * 5 + i)) * k(slot, kv * 5 + i);
      sum += std::exp(0.6 * score), value += std::exp(0.6 * score) * v(slot, kv * 3 + c % 3);
    };
    for (int64_t s = offsets[utterance[r]]; s < offsets[utterance[r] + 1]; ++s) add(sk, sv, s);
    for (int64_t s = 0; s < length[r]; ++s) add(tk, tv, r * max_tail + s);
    return sum == 0 ? 0.0 : value / sum;
  });
  const int32_t too_long[] = {3, 141, 1, 4, 0};
  DecodeCache<T> broken = cache;
  broken.tail_length = too_long;
  EXPECT_THROW((attention_decode<Cpu, T>(ctx, shape, broken, q.in(), out.mat())), ShapeError);
}

TYPED_TEST(Decode, AppendAndReorderTails) {
  using T = TypeParam;
  const Context ctx = Context::cpu(1);
  Grid<T> x(3, 4, 1), tail(3 * 5, 4, 2), other(3 * 5, 4);
  x.random(1), tail.random(2), other.fill(9);
  const Grid<T> before = tail;
  int32_t length[] = {2, 0, 4};
  const int32_t full[] = {2, 5, 4}, parent[] = {2, 0, 2};
  tail_append<Cpu, T>(ctx, x.in(), length, 5, tail.mat());
  expect_close(
      tail,
      [&](int64_t r, int64_t c) { return static_cast<double>(r % 5 == length[r / 5] ? x(r / 5, c) : before(r, c)); },
      0);
  EXPECT_THROW((tail_append<Cpu, T>(ctx, x.in(), full, 5, tail.mat())), ShapeError);
  add_to_all<Cpu>(ctx, 3, 1, length);
  EXPECT_EQ(length[2], 5);
  tail_reorder<Cpu, T>(ctx, tail.in(), parent, length, 3, 5, other.mat());
  expect_close(
      other,
      [&](int64_t r, int64_t c) {
        const int32_t from = parent[r / 5];
        return r % 5 < length[from] ? static_cast<double>(tail(from * 5 + r % 5, c)) : 9.0;
      },
      0);
}

TYPED_TEST(Decode, StepwiseChunkSumsEqualWholeSequences) {
  using T = TypeParam;
  const Context ctx = Context::cpu(1);
  constexpr int64_t n = 11, r = 6, h = 4, rope = 2, max_tail = 5;
  for (int stride : {1, 2, 3}) {
    const int64_t slots = (n + stride - 1) / stride, room = std::max<int64_t>(max_tail, slots);
    const Segments own(ctx, {n});
    Grid<T> c(n, r, 1), p(n, h), code(n, h, 1), keys(n, rope), sum(n, r), live(1, r), tail(room, r + rope, 1);
    c.random(1), p.random(2), code.random(3), keys.random(4);
    std::vector<T> gate(n);
    gate_sum_forward<Cpu, T>(ctx, {{}, own.view()}, stride, {}, {c.in(), p.in()}, code.in(), {},
                             {sum.mat(), gate.data()});
    int32_t length = 0;
    for (int32_t i = 0; i < n; ++i) {
      mtla_append<Cpu, T>(ctx, stride, c.in().slice(i, i + 1), p.in().slice(i, i + 1), code.in(),
                          keys.in().slice(i, i + 1), &i, &length, room, live.mat(), tail.mat());
      ASSERT_EQ(length, i / stride + 1);
      for (int64_t k = 0; k < r; ++k) ASSERT_NEAR(tail(length - 1, k), sum(i, k), tolerance<T>);
      for (int64_t k = 0; k < rope; ++k) ASSERT_EQ(tail(length - 1, r + k), keys(i, k));
    }
    const int32_t next = static_cast<int32_t>(stride * room);
    int32_t at_end = static_cast<int32_t>(room);
    if (next / stride < n) {
      EXPECT_THROW((mtla_append<Cpu, T>(ctx, stride, c.in().slice(0, 1), p.in().slice(0, 1), code.in(),
                                        keys.in().slice(0, 1), &next, &at_end, room, live.mat(), tail.mat())),
                   ShapeError);
    }
  }
}

TYPED_TEST(Decode, TopKOfLogSoftmax) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  Grid<T> x(3, 6, 1), values(3, 4);
  const double rows[3][6] = {{1, 5, 2, 5, 0, 3}, {2, 2, 2, 2, 2, 2}, {-1, -2, -3, 9, 8, 7}};
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 6; ++c) x(r, c) = static_cast<T>(rows[r][c]);
  }
  std::vector<int32_t> tokens(12);
  auto run = [&](double temperature, int forbidden, int eos, bool allow, bool only) {
    topk_log_softmax<Cpu, T>(ctx, x.in(), temperature, 4, forbidden, eos, allow, only, values.data(), tokens.data());
    expect_close(values, [&](int64_t r, int64_t c) {
      if (tokens[r * 4 + c] < 0) return -std::numeric_limits<double>::infinity();
      double sum = 0;
      for (double v : rows[r]) sum += std::exp(v / temperature);
      return rows[r][tokens[r * 4 + c]] / temperature - std::log(sum);
    });
  };
  run(1, -1, 2, true, false);
  EXPECT_EQ(tokens, (std::vector<int32_t>{1, 3, 5, 2, 0, 1, 2, 3, 3, 4, 5, 0}));
  run(0.5, 3, 5, false, false);
  EXPECT_EQ(tokens, (std::vector<int32_t>{1, 2, 0, 4, 0, 1, 2, 4, 4, 0, 1, 2}));
  run(2, 3, 5, true, true);
  EXPECT_EQ(tokens, (std::vector<int32_t>{5, -1, -1, -1, 5, -1, -1, -1, 5, -1, -1, -1}));
  x(1, 3) = nan_of<T>;
  topk_log_softmax<Cpu, T>(ctx, x.in(), 1, 4, -1, 2, true, false, values.data(), tokens.data());
  for (int64_t c = 0; c < 4; ++c) EXPECT_TRUE(std::isnan(values(1, c)));
}

TYPED_TEST(Decode, TopKOfManyEqualsSorting) {
  using T = TypeParam;
  const Context ctx = Context::cpu(2);
  constexpr int64_t n = 5000;
  constexpr int k = 20;
  Grid<T> x(4, n), values(4, k);
  x.random(1);
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t c = 0; c < n; ++c) x(r, c) = std::round(x(r, c) * 50) / 50;  // many ties
  }
  std::vector<int32_t> tokens(4 * k);
  topk_log_softmax<Cpu, T>(ctx, x.in(), 1, k, 7, 9, false, false, values.data(), tokens.data());
  for (int64_t r = 0; r < 4; ++r) {
    std::vector<int32_t> order;
    for (int32_t c = 0; c < n; ++c) {
      if (c != 7 && c != 9) order.push_back(c);
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return x(r, a) > x(r, b); });
    order.resize(k);
    EXPECT_EQ(order, (std::vector<int32_t>(tokens.begin() + r * k, tokens.begin() + (r + 1) * k)));
  }
}

}  // namespace
}  // namespace tactus::testing
