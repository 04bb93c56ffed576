#include "data/batches/specaugment.h"

#include <cmath>
#include <set>

#include "core/files/h5.h"
#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

h5::File fixture() { return h5::File::open(std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/features.h5"); }

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
    std::vector<float> x = toy_frames(3, 60, 80), scratch;
    augment({.time_warp = 5}, x.data(), 60, 80, 1, {seed, epoch, utterance}, scratch);
    return x;
  };
  EXPECT_EQ(augmented(1, 2, 3), augmented(1, 2, 3));
  EXPECT_NE(augmented(1, 2, 3), augmented(2, 2, 3));
  EXPECT_NE(augmented(1, 2, 3), augmented(1, 3, 3));
  EXPECT_NE(augmented(1, 2, 3), augmented(1, 2, 4));
  EXPECT_NE(augmented(1, 2, 3), toy_frames(3, 60, 80));
}

TEST(SpecAugment, PresetsSetNumbersThatMayBeGivenAsWell) {
  SpecAugmentOptions lb, ld, mixed;
  Config::from_text("{}").read(lb);
  Config::from_text("policy: ld").read(ld);
  Config::from_text("policy: ld\ntime_masks: 5\ntime_width: 70").read(mixed);
  EXPECT_EQ(lb.frequency_masks + lb.time_masks, 2);
  EXPECT_EQ(ld.frequency_masks, 2);
  EXPECT_EQ(ld.time_masks, 2);
  EXPECT_EQ(ld.frequency_width, 27);
  EXPECT_EQ(mixed.frequency_masks, 2);
  EXPECT_EQ(mixed.time_masks, 5);
  // The resolved configuration says the same.
  SpecAugmentOptions again;
  Config::from_text(dump_yaml(mixed)).read(again);
  EXPECT_EQ(dump_yaml(again), dump_yaml(mixed));
  EXPECT_EQ(again.time_masks, 5);
}

TEST(SpecAugment, FrequencyMasksCoverTheSameBinsOfEveryLayer) {
  std::vector<float> x(4 * 12);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  SpecAugmentMasks masks;
  masks.frequency.emplace_back(1, 2);
  apply_masks(masks, x.data(), 4, 4, 3);
  for (int64_t i = 0; i < 48; ++i) {
    const bool masked = i % 4 == 1 || i % 4 == 2;
    EXPECT_EQ(x[i], masked ? 23.5f : static_cast<float>(i));
  }
}

TEST(TimeWarping, CentersAndShiftsCoverTheirRanges) {
  const SpecAugmentOptions options{.time_warp = 5};
  std::set<int64_t> centers, shifts;
  for (uint64_t key = 0; key < 2000; ++key) {
    Rng rng(key);
    const TimeWarp warp = draw_warp(options, 30, rng);
    centers.insert(warp.center), shifts.insert(warp.warped - warp.center);
  }
  EXPECT_EQ(*centers.begin(), 5);
  EXPECT_EQ(*centers.rbegin(), 24);
  EXPECT_EQ(centers.size(), 20u);
  EXPECT_EQ(*shifts.begin(), -4);
  EXPECT_EQ(*shifts.rbegin(), 5);
  Rng rng(1);
  EXPECT_EQ(draw_warp(options, 10, rng).center, 0) << "too short to warp";
  EXPECT_EQ(draw_warp({}, 30, rng).center, 0) << "off by default";
}

TEST(TimeWarping, ResamplesLikeImageLibraries) {
  std::vector<float> x(14), scratch;
  for (size_t i = 0; i < 7; ++i) x[2 * i] = static_cast<float>(i * i), x[2 * i + 1] = 3;
  const std::vector<float> before = x;
  apply_warp({3, 3}, x.data(), 7, 2, scratch);
  EXPECT_EQ(x, before);
  apply_warp({3, 4}, x.data(), 7, 2, scratch);
  // Computed with NumPy from the definition of cubic convolution with a = -0.75, half-pixel centres, clamped ends.
  const std::vector<float> expected = {-0.07177734f, 0.3100586f, 2.190918f, 4.215332f, 9.84838f, 20.125f, 34.57755f};
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_NEAR(x[2 * i], expected[i], 1e-5) << i;
    EXPECT_NEAR(x[2 * i + 1], 3, 1e-6) << "weights sum to 1";
  }
}

}  // namespace
}  // namespace tactus
