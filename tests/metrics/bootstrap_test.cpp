#include "train/metrics/bootstrap.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/metrics/corpus.h"

namespace tactus {
namespace {

using testing::kHypotheses;
using testing::kOtherSystem;
using testing::kReferences;
using testing::Lines;
using testing::message_of;

// For five segments all 5^5 resamples can be listed. The expected values are exact over that list, from the segment
// statistics of sacreBLEU 2.6.0 and jiwer 4.0.0; 20,000 drawn resamples must come near: the p-value's standard error is
// then below 0.0036, and the quantiles lie on a fine grid.
TEST(PairedBootstrap, ComesNearTheFullEnumeration) {
  const auto bleu = paired_bootstrap("bleu", kHypotheses, kOtherSystem, kReferences, {}, 20000);
  EXPECT_NEAR(bleu.system.value, 53.32264676601877, 1e-9);
  EXPECT_NEAR(bleu.against.value, 47.47170243723783, 1e-9);
  EXPECT_NEAR(bleu.p_value, 0.2000, 0.015);
  EXPECT_NEAR(bleu.system_interval.low, 38.318, 1.0);
  EXPECT_NEAR(bleu.system_interval.high, 65.851, 1.0);
  EXPECT_NEAR(bleu.against_interval.low, 27.966, 1.0);
  EXPECT_NEAR(bleu.against_interval.high, 65.501, 1.0);

  const auto wer = paired_bootstrap("wer", kHypotheses, kOtherSystem, kReferences, {}, 20000);
  EXPECT_NEAR(wer.system.value, 32.25806451612903, 1e-9);
  EXPECT_NEAR(wer.against.value, 29.032258064516128, 1e-9);
  EXPECT_NEAR(wer.p_value, 0.6544, 0.015);
  EXPECT_NEAR(wer.system_interval.low, 23.333, 0.5);
  EXPECT_NEAR(wer.system_interval.high, 46.154, 0.5);
  EXPECT_NEAR(wer.against_interval.low, 20.690, 0.5);
  EXPECT_NEAR(wer.against_interval.high, 37.931, 0.5);
}

TEST(PairedBootstrap, EqualSystemsHavePOne) {
  for (const char* metric : {"bleu", "wer"}) {
    const auto result = paired_bootstrap(metric, kHypotheses, kHypotheses, kReferences);
    EXPECT_EQ(result.p_value, 1.0) << metric;
    EXPECT_EQ(result.system_interval.low, result.against_interval.low) << metric;
    EXPECT_EQ(result.system_interval.high, result.against_interval.high) << metric;
  }
}

TEST(PairedBootstrap, ClearDifferenceIsSignificantEitherWayRound) {
  Lines good, bad, refs;
  for (int i = 0; i < 60; ++i) {
    refs.push_back(kReferences[i % 5] + " " + std::to_string(i));
    good.push_back(refs.back());
    bad.push_back(i % 3 == 0 ? refs.back() : "etwas ganz anderes als gesagt");
  }
  for (const char* metric : {"bleu", "wer"}) {
    const auto forward = paired_bootstrap(metric, good, bad, refs),
               backward = paired_bootstrap(metric, bad, good, refs);
    EXPECT_EQ(forward.resamples, 1000);
    EXPECT_DOUBLE_EQ(forward.p_value, 1.0 / 1001.0) << metric;
    EXPECT_EQ(forward.p_value, backward.p_value) << metric;
  }
}

TEST(PairedBootstrap, SameSeedSameNumbers) {
  const auto run = [](uint64_t seed) {
    return paired_bootstrap("bleu", kHypotheses, kOtherSystem, kReferences, {}, 500, seed).to_string();
  };
  EXPECT_EQ(run(12345), run(12345));
  EXPECT_NE(run(12345), run(1));
}

TEST(PairedBootstrap, Printed) {
  const auto result = paired_bootstrap("wer", {"a b"}, {"a c"}, Lines{"a b"});
  EXPECT_EQ(result.to_string(),
            "WER 0.00 [0.00, 0.00] against 50.00 [50.00, 50.00]: -50.00, p = 0.0010 (paired bootstrap, 1000 resamples, "
            "seed 12345)");
}

TEST(PairedBootstrap, RefusesBadInput) {
  EXPECT_THROW(paired_bootstrap("bleu", kHypotheses, kOtherSystem, kReferences, {}, 0), ConfigError);
  EXPECT_THROW(paired_bootstrap("bleau", kHypotheses, kOtherSystem, kReferences), ConfigError);
  EXPECT_EQ(message_of<DataError>([] { paired_bootstrap("bleu", kHypotheses, {"a"}, kReferences); }),
            "bleu: 1 hypotheses but 5 references; they must be equally many");
}

}  // namespace
}  // namespace tactus
