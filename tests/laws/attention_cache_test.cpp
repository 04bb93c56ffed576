// Laws of caches: reordering equals recomputation, payload equals the analytic cost, steps take no memory from the
// device, and a snapshot goes back.
#include "core/error.h"
#include "tests/laws/laws.h"

namespace tactus::laws {
namespace {

constexpr int64_t kWidth = Mechanism::kWidth;

/// A hypothesis: its utterance and every row it was given.
struct History {
  size_t utterance;
  std::vector<double> rows;
};

class AttentionCaches : public LawSuite {
 protected:
  const Context& ctx() const { return shared_context(GetParam().device); }
};

/// Output of the newest row of each hypothesis, from new caches.
std::vector<double> recompute(const Context& ctx, const Mechanism& m, DType dtype, const std::vector<int64_t>& lengths,
                              const std::vector<double>& prompt, const std::vector<History>& hypotheses) {
  std::vector<double> out;
  for (const History& h : hypotheses) {
    int64_t begin = 0;
    for (size_t u = 0; u < h.utterance; ++u) begin += lengths[u];
    const int64_t steps = static_cast<int64_t>(h.rows.size()) / kWidth, own = lengths[h.utterance];
    Decoding d(ctx, m, dtype, {own}, rows_of(prompt, begin, begin + own, kWidth), 1, steps);
    std::vector<double> y;
    for (int64_t t = 0; t < steps; ++t) y = d.step(rows_of(h.rows, t, t + 1, kWidth));
    append(out, y);
  }
  return out;
}

TEST_P(AttentionCaches, ReorderEqualsRecomputation) {
  Mechanism m(ctx(), GetParam());
  const std::vector<int64_t> lengths = {0, 1, 5, 6};
  const std::vector<double> prompt = normals(sum_of(lengths) * kWidth, 5);
  constexpr int64_t kSteps = 9;
  Decoding decoding(ctx(), m, dtype(), lengths, prompt, 10, kSteps);
  std::vector<History> live = {{0, {}}, {1, {}}, {2, {}}, {3, {}}};
  // Grows to the limit, keeps, shrinks to one, grows again.
  const std::vector<size_t> sizes = {10, 10, 3, 1, 4, 9, 2, 5, 5};
  Rng rng(17);
  for (int64_t t = 0; t < kSteps; ++t) {
    const std::vector<double> x = normals(static_cast<int64_t>(live.size()) * kWidth, 100 + static_cast<uint64_t>(t));
    for (size_t r = 0; r < live.size(); ++r) {
      const int64_t row = static_cast<int64_t>(r);
      append(live[r].rows, rows_of(x, row, row + 1, kWidth));
    }
    const std::vector<double> got = decoding.step(x), want = recompute(ctx(), m, dtype(), lengths, prompt, live);
    ASSERT_LE(error_of(got, want), pick(1e-13, 2e-6, 1e-5, 2e-2)) << "step " << t;

    int64_t cost = 0;
    for (int64_t n : decoding.lengths()) cost += m->cost(n).cache_elements * size_of(dtype());
    EXPECT_EQ(decoding.cache().payload_unshared(), cost) << "step " << t;
    EXPECT_LE(decoding.cache().payload(), decoding.cache().payload_unshared());

    std::vector<int32_t> parents;
    std::vector<History> next;
    for (size_t r = 0; r < sizes[static_cast<size_t>(t)]; ++r) {
      parents.push_back(static_cast<int32_t>(rng.below(live.size())));
      next.push_back(live[static_cast<size_t>(parents.back())]);
    }
    decoding.reorder(parents);
    live = next;
  }
}

TEST_P(AttentionCaches, PayloadEqualsCost) {
  Mechanism m(ctx(), GetParam());
  const std::vector<int64_t> lengths = {0, 1, 4, 7, 9};
  Decoding decoding(ctx(), m, dtype(), lengths, normals(sum_of(lengths) * kWidth, 5), 5, 8);
  int64_t reserved = 0;
  for (int64_t t = 0; t <= 8; ++t) {
    int64_t cost = 0;
    for (int64_t n : lengths) cost += m->cost(n + t).cache_elements * size_of(dtype());
    EXPECT_EQ(decoding.cache().payload(), cost) << "after " << t << " steps";
    // The first step may make a table; nothing grows afterwards.
    if (t <= 1) reserved = decoding.cache().reserved();
    EXPECT_EQ(decoding.cache().reserved(), reserved);
    EXPECT_LE(cost, reserved);
    if (t < 8) decoding.step(normals(5 * kWidth, static_cast<uint64_t>(t)));
  }
}

TEST_P(AttentionCaches, HypothesesShareThePrompt) {
  Mechanism m(ctx(), GetParam());
  constexpr int64_t kPrompt = 12, kBeams = 6;  // a multiple of every stride tested
  Decoding decoding(ctx(), m, dtype(), {kPrompt}, normals(kPrompt * kWidth, 5), kBeams, 4);
  decoding.reorder(std::vector<int32_t>(kBeams, 0));
  decoding.step(normals(kBeams * kWidth, 6));
  const int64_t prompt = m->cost(kPrompt).cache_elements, whole = m->cost(kPrompt + 1).cache_elements;
  EXPECT_EQ(decoding.cache().payload_unshared(), kBeams * whole * size_of(dtype()));
  if (m->traits().fixed_state) return;  // nothing that could be shared
  EXPECT_EQ(decoding.cache().payload(), (prompt + kBeams * (whole - prompt)) * size_of(dtype()));
}

TEST_P(AttentionCaches, StepsTakeNoMemoryFromTheDevice) {
  const Context own = fresh_context(GetParam().device);
  Mechanism m(own, GetParam());
  constexpr int64_t kSteps = 140;
  Decoding decoding(own, m, dtype(), {5, 2}, normals(7 * kWidth, 5), 2, kSteps);
  const std::vector<double> x = normals(2 * kWidth, 6);
  for (int i = 0; i < 2; ++i) decoding.step(x);
  const MemoryUse early = own.allocator().use();
  for (int64_t i = 2; i < kSteps; ++i) decoding.step(x);
  const MemoryUse late = own.allocator().use();
  EXPECT_EQ(late.device_allocations, early.device_allocations);
  EXPECT_EQ(late.live, early.live);
  EXPECT_EQ(late.peak, early.peak);
}

TEST_P(AttentionCaches, SnapshotGoesBack) {
  Mechanism m(ctx(), GetParam());
  Decoding decoding(ctx(), m, dtype(), {5, 0, 3}, normals(8 * kWidth, 5), 7, 9);
  for (uint64_t t = 0; t < 3; ++t) decoding.step(normals(3 * kWidth, 20 + t));
  const AttentionCache::Snapshot snapshot = decoding.cache().snapshot();
  const std::vector<int64_t> lengths = decoding.lengths();
  const int64_t payload = decoding.cache().payload();
  std::vector<std::vector<double>> first;
  for (uint64_t t = 0; t < 5; ++t) first.push_back(decoding.step(normals(3 * kWidth, 30 + t)));
  decoding.reorder({2, 2, 0, 1, 1, 0, 2});
  decoding.cache().restore(snapshot);
  decoding.lengths() = lengths;
  EXPECT_EQ(decoding.cache().payload(), payload);
  for (uint64_t t = 0; t < 5; ++t) EXPECT_EQ(decoding.step(normals(3 * kWidth, 30 + t)), first[t]) << "step " << t;
}

TEST_P(AttentionCaches, StepsBeyondTheLimitAreErrors) {
  Mechanism m(ctx(), GetParam());
  Decoding decoding(ctx(), m, dtype(), {3}, normals(3 * kWidth, 5), 2, 2);
  const std::vector<double> x = normals(kWidth, 6);
  decoding.step(x);
  decoding.step(x);
  EXPECT_THROW(decoding.step(x), Error);
  EXPECT_THROW(decoding.cache().reorder({0, 0, 0}), Error);
}

const std::vector<int64_t> kStrides = {1, 2, 3, 4};
INSTANTIATE_TEST_SUITE_P(Cpu, AttentionCaches, ::testing::ValuesIn(cases(Device::cpu, kStrides)), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, AttentionCaches, ::testing::ValuesIn(cases(Device::cuda, kStrides)), case_name);

}  // namespace
}  // namespace tactus::laws
