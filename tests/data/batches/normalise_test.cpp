#include "data/batches/normalise.h"

#include <cmath>

#include "core/files/h5.h"
#include "core/half.h"
#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

h5::File fixture() { return h5::File::open(std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/features.h5"); }

FeatureMoments moments_of(const std::vector<float>& x, int64_t bins) {
  FeatureMoments m{static_cast<int64_t>(x.size()) / bins, std::vector<double>(bins), std::vector<double>(bins)};
  for (size_t i = 0; i < x.size(); ++i) {
    m.sum[i % bins] += x[i];
    m.squares[i % bins] += static_cast<double>(x[i]) * x[i];
  }
  return m;
}

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

TEST(Cmvn, MeansAlone) {
  std::vector<float> x = {1, 5, 3, 5};
  subtract_mean(x.data(), 2, 2);
  EXPECT_EQ(x, (std::vector<float>{-1, 0, 1, 0}));
  subtract_mean(nullptr, 0, 2);
}

TEST(Halves, VectorsOfThemAreExact) {
  std::vector<uint16_t> halves(65536);
  std::vector<float> floats(65536);
  for (int i = 0; i < 65536; ++i) halves[i] = static_cast<uint16_t>(i);
  floats_from_halves(halves.data(), floats.data(), 65536);
  for (int i = 0; i < 65536; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(float_from_half(halves[i]))) << i;
  }
}

TEST(GlobalNormalisation, EqualsThatOfOneUtteranceWhichIsAll) {
  std::vector<float> x = toy_frames(1, 200, 4), y = x;
  Normaliser::global(moments_of(x, 4), "x").apply(x.data(), 200, 4);
  Normaliser(Cmvn::utterance).apply(y.data(), 200, 4);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5);
  // Of another utterance it is not: the mean stays.
  std::vector<float> other = toy_frames(2, 10, 4);
  for (float& v : other) v += 100;
  Normaliser::global(moments_of(toy_frames(1, 200, 4), 4), "x").apply(other.data(), 10, 4);
  EXPECT_GT(other[0], 10);
}

TEST(GlobalNormalisation, BinsWithoutVarianceAreCentredAndReported) {
  std::vector<float> x = toy_frames(1, 50, 3);
  for (int r = 0; r < 50; ++r) x[r * 3 + 1] = 7;
  const Normaliser n = Normaliser::global(moments_of(x, 3), "x");
  EXPECT_EQ(n.floored(), std::vector<int64_t>{1});
  std::vector<float> frame = {0, 7.5f, 0};
  n.apply(frame.data(), 1, 3);
  EXPECT_EQ(frame[1], 0.5f);
  EXPECT_THROW(n.apply(frame.data(), 1, 2), ShapeError);
}

TEST(GlobalNormalisation, PartsAddUp) {
  const std::vector<float> a = toy_frames(1, 30, 3), b = toy_frames(2, 50, 3);
  std::vector<float> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const FeatureMoments ma = moments_of(a, 3), mb = moments_of(b, 3), all = pooled({&ma, &mb});
  EXPECT_EQ(all.frames, 80);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(all.squares[k], moments_of(both, 3).squares[k], 1e-6);
  const FeatureMoments other = moments_of(a, 2);
  EXPECT_THROW(pooled({&ma, &other}), ShapeError);
}

class StatisticsTest : public FolderTest {};

TEST_F(StatisticsTest, FilesRoundTripAndAreChecked) {
  const FeatureMoments m = moments_of(toy_frames(1, 30, 3), 3);
  write_statistics(path("s.h5"), "abc", m);
  const FeatureMoments back = read_statistics(path("s.h5"), "abc", 3);
  EXPECT_EQ(back.frames, 30);
  EXPECT_EQ(back.sum, m.sum);
  EXPECT_EQ(back.squares, m.squares);
  const auto says = [&](const std::string& file, const std::string& hash, int64_t width) {
    return message_of<DataError>([&] { read_statistics(path(file), hash, width); });
  };
  EXPECT_TRUE(contains(says("none.h5", "abc", 3), path("none.h5")));
  EXPECT_TRUE(contains(says("s.h5", "xyz", 3), "statistics of features abc, but the corpus has xyz"));
  EXPECT_TRUE(contains(says("s.h5", "abc", 80), "/sum has 3 numbers, frames have 80"));
  write_statistics(path("empty.h5"), "abc", {0, m.sum, m.squares});
  EXPECT_TRUE(contains(says("empty.h5", "abc", 3), "no frames"));
  write_statistics(path("nan.h5"), "abc", {3, {1, NAN, 1}, m.squares});
  EXPECT_TRUE(contains(says("nan.h5", "abc", 3), "bin 1 are not finite"));
  h5::replace(path("other.h5"), [](h5::File& f) { f.write_string("/x", "y"); });
  EXPECT_TRUE(contains(says("other.h5", "abc", 3), "not a statistics file"));
  write("text.h5", "hello");
  EXPECT_TRUE(contains(says("text.h5", "abc", 3), path("text.h5")));
  EXPECT_THROW(cmvn_from_string("both"), ConfigError);
  EXPECT_EQ(cmvn_from_string("utterance_mean"), Cmvn::utterance_mean);
}

}  // namespace
}  // namespace tactus
