#include "data/features.h"

#include <cmath>
#include <set>

#include "core/h5.h"
#include "core/half.h"
#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

h5::File fixture() { return h5::File::open(std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/features.h5"); }

TEST(Cmvn, MatchesTheReference) {
  std::vector<float> x = fixture().read<float>("povey");
  std::vector<float> expected = fixture().read<float>("cmvn");
  apply_cmvn(x.data(), 33, 80);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected[i], 1e-3 * std::max(1.0f, std::abs(expected[i])));
}

TEST(Cmvn, MeanZeroVarianceOneAndConstantsSafe) {
  std::vector<float> x = toy_frames(1, 50, 4);
  for (int r = 0; r < 50; ++r) x[r * 4 + 2] = 7.25f;
  apply_cmvn(x.data(), 50, 4);
  for (int b = 0; b < 4; ++b) {
    double sum = 0, squares = 0;
    for (int r = 0; r < 50; ++r) sum += x[r * 4 + b], squares += x[r * 4 + b] * x[r * 4 + b];
    EXPECT_NEAR(sum / 50, 0, 1e-6);
    EXPECT_NEAR(squares / 50, b == 2 ? 0 : 1, 1e-5);
  }
  std::vector<float> one = {3, -4};
  apply_cmvn(one.data(), 1, 2);
  EXPECT_EQ(one, (std::vector<float>{0, 0}));
  apply_cmvn(nullptr, 0, 80);
}

TEST(Cmvn, SumsOfHalvesDoNotDependOnTheOrderOfFrames) {
  std::vector<float> x = toy_frames(2, 400, 3), reversed(x.size());
  for (float& v : x) v = float_from_half(half_from_float(v));
  for (int r = 0; r < 400; ++r) std::copy_n(&x[r * 3], 3, &reversed[(399 - r) * 3]);
  apply_cmvn(x.data(), 400, 3);
  apply_cmvn(reversed.data(), 400, 3);
  for (int r = 0; r < 400; ++r)
    for (int b = 0; b < 3; ++b) ASSERT_EQ(x[r * 3 + b], reversed[(399 - r) * 3 + b]);
}

TEST(SpecAugment, MasksMatchTheReference) {
  h5::File f = fixture();
  std::vector<float> x = f.read<float>("cmvn"), expected = f.read<float>("masked");
  std::vector<int64_t> m = f.read<int64_t>("masks_f_f0_t_t0");
  SpecAugmentMasks masks;
  masks.frequency.emplace_back(m[1], m[0]);
  masks.time.emplace_back(m[3], m[2]);
  apply_masks(masks, x.data(), 33, 80);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected[i], 1e-6);
}

TEST(SpecAugment, WidthsAndPlacesCoverExactlyTheirRanges) {
  SpecAugmentOptions options;
  for (auto [rows, widths] : {std::pair<int64_t, int64_t>{150, 100}, {33, 33}, {1, 1}}) {
    std::set<int64_t> f, t;
    int64_t lowest_end = 1 << 20, highest_end = 0;
    for (uint64_t key = 0; key < 6000; ++key) {
      Rng rng(key);
      SpecAugmentMasks m = draw_masks(options, rows, 80, rng);
      ASSERT_EQ(m.frequency.size(), 1u);
      ASSERT_EQ(m.time.size(), 1u);
      f.insert(m.frequency[0].second), t.insert(m.time[0].second);
      // begin < extent - width, so that the last row or bin is never masked.
      ASSERT_LT(m.frequency[0].first, 80 - m.frequency[0].second);
      ASSERT_LT(m.time[0].first, rows - m.time[0].second);
      ASSERT_GE(m.time[0].first, 0);
      lowest_end = std::min(lowest_end, m.frequency[0].first + m.frequency[0].second);
      highest_end = std::max(highest_end, m.frequency[0].first + m.frequency[0].second);
    }
    EXPECT_EQ(f.size(), 27u);
    EXPECT_EQ(*f.begin(), 0);
    EXPECT_EQ(*f.rbegin(), 26);
    EXPECT_EQ(static_cast<int64_t>(t.size()), widths);
    EXPECT_EQ(*t.rbegin(), widths - 1);
    EXPECT_LE(lowest_end, 1);
    EXPECT_EQ(highest_end, 79);
  }
}

TEST(SpecAugment, PolicyOptions) {
  SpecAugmentOptions options{
      .frequency_masks = 2, .frequency_width = 5, .time_masks = 3, .time_width = 40, .time_fraction = 0.2};
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    SpecAugmentMasks m = draw_masks(options, 50, 4, rng);
    ASSERT_EQ(m.frequency.size(), 2u);
    ASSERT_EQ(m.time.size(), 3u);
    for (auto [begin, width] : m.frequency) ASSERT_LE(begin + width, 4);
    for (auto [begin, width] : m.time) ASSERT_LT(width, 10);
  }
  EXPECT_TRUE(draw_masks(options, 4, 4, rng).time.empty());
  EXPECT_TRUE(draw_masks(options, 0, 4, rng).frequency.empty());
  options.enabled = false;
  EXPECT_TRUE(draw_masks(options, 50, 4, rng).frequency.empty());
}

TEST(SpecAugment, DependsOnSeedEpochAndUtteranceOnly) {
  auto augmented = [](uint64_t seed, int64_t epoch, int64_t utterance) {
    std::vector<float> x = toy_frames(3, 60, 80);
    augment({}, x.data(), 60, 80, seed, epoch, utterance);
    return x;
  };
  EXPECT_EQ(augmented(1, 2, 3), augmented(1, 2, 3));
  EXPECT_NE(augmented(1, 2, 3), augmented(2, 2, 3));
  EXPECT_NE(augmented(1, 2, 3), augmented(1, 3, 3));
  EXPECT_NE(augmented(1, 2, 3), augmented(1, 2, 4));
  EXPECT_NE(augmented(1, 2, 3), toy_frames(3, 60, 80));
}

}  // namespace
}  // namespace tactus
