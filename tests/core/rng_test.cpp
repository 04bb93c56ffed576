#include "core/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace tactus {
namespace {

std::array<uint32_t, 4> block(uint64_t key, std::array<uint32_t, 4> c) {
  const Philox4 r = philox(key, c[0], c[1], c[2], c[3]);
  return {r.v[0], r.v[1], r.v[2], r.v[3]};
}

// Known answers for philox4x32-10 published with Random123.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(block(0, {0, 0, 0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(block(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Digits of pi: the counter first, then the key words 0xa4093822, 0x299f31d0.
  EXPECT_EQ(block(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

int64_t kept(const DropoutKey& key, uint32_t groups) {
  int64_t n = 0;
  for (uint32_t g = 0; g < groups; ++g) n += __builtin_popcount(keep_bits(key, g % 5, g % 11, g % 3, g));
  return n;
}

TEST(Dropout, KeepsWithItsProbability) {
  constexpr uint32_t kGroups = 20000;
  constexpr double kDraws = 8.0 * kGroups;
  for (float p : {0.05f, 0.1f, 0.3f, 0.5f, 0.9f}) {
    const DropoutKey key{mix_key(3, 4), p};
    const double share = static_cast<double>(kept(key, kGroups)) / kDraws;
    // Five standard deviations.
    EXPECT_NEAR(share, 1 - p, 5 * std::sqrt(p * (1 - p) / kDraws)) << p;
    EXPECT_NEAR(share * key.scale(), 1, 0.05) << p;
  }
}

TEST(Dropout, ScaleUndoesTheThresholdExactly) {
  for (float p : {0.1f, 0.25f, 0.3f, 0.5f}) {
    const DropoutKey key{1, p};
    EXPECT_FLOAT_EQ(key.scale() * static_cast<float>(65536 - key.threshold()) / 65536.0f, 1);
  }
  EXPECT_FALSE(DropoutKey{}.active());
  EXPECT_EQ((DropoutKey{1, 0}).scale(), 1);
  EXPECT_EQ(kept({1, 0}, 100), 800);
}

TEST(Dropout, EveryPartOfTheCounterAndKeyMatters) {
  const DropoutKey key{5, 0.5f};
  std::set<uint32_t> seen;
  auto signature = [](const DropoutKey& k, uint32_t utterance, uint32_t row, uint32_t head, uint32_t group) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 4; ++i) bits = bits << 8 | keep_bits(k, utterance, row, head, group + 100 * i);
    return bits;
  };
  seen.insert(signature(key, 1, 1, 1, 1));
  seen.insert(signature(key, 2, 1, 1, 1));
  seen.insert(signature(key, 1, 2, 1, 1));
  seen.insert(signature(key, 1, 1, 2, 1));
  seen.insert(signature(key, 1, 1, 1, 2));
  seen.insert(signature({6, 0.5f}, 1, 1, 1, 1));
  seen.insert(signature({5 + (uint64_t{1} << 40), 0.5f}, 1, 1, 1, 1));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(signature(key, 1, 1, 1, 1), signature(key, 1, 1, 1, 1));
}

TEST(Rng, MomentsOfUniformAndNormal) {
  Rng rng(11);
  constexpr int n = 100000;
  double uniform = 0, normal = 0, square = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double u = rng.uniform(), z = rng.normal();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    uniform += u, normal += z, square += z * z, fourth += z * z * z * z;
  }
  EXPECT_NEAR(uniform / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(normal / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(square / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0 / n));
}

TEST(Rng, BelowIsUniform) {
  Rng rng(12);
  std::array<int, 7> counts{};
  constexpr int n = 70000;
  for (int i = 0; i < n; ++i) ++counts[rng.below(7)];
  for (int c : counts) EXPECT_NEAR(c, n / 7, 5 * std::sqrt(n / 7.0));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rng.below(1), 0u);
}

TEST(Rng, SameKeySameStream) {
  Rng a(7), b(7), c(8);
  std::vector<double> x, y, z;
  for (int i = 0; i < 20; ++i) x.push_back(a.normal()), y.push_back(b.normal()), z.push_back(c.normal());
  EXPECT_EQ(x, y);
  EXPECT_NE(x, z);
}

TEST(Rng, KeysMixAndPathsHash) {
  // FNV-1a of "a" and of nothing, 64 bits.
  EXPECT_EQ(hash_path("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(hash_path(""), 0xcbf29ce484222325ull);
  EXPECT_NE(mix_key(1, 2), mix_key(2, 1));
  EXPECT_NE(mix_key(1, 2), mix_key(1, 3));
}

}  // namespace
}  // namespace tactus
