#include "train/metrics/metric.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/metrics/corpus.h"

namespace tactus {
namespace {

using testing::kHypotheses;
using testing::kOtherSystem;
using testing::kReferences;
using testing::kSecondReferences;
using testing::Lines;
using testing::message_of;

// BLEU from sacreBLEU 2.6.0, error rates from jiwer 4.0.0, accuracies counted by hand.
TEST(Metric, EachByName) {
  const auto value = [](const char* name) { return compute_metric(name, kHypotheses, kReferences).value; };
  EXPECT_NEAR(value("bleu"), 53.32264676601877, 1e-9);
  EXPECT_NEAR(value("wer"), 32.25806451612903, 1e-9);
  EXPECT_NEAR(value("cer"), 15.476190476190477, 1e-9);
  EXPECT_EQ(value("accuracy"), 0.0);
  EXPECT_EQ(value("first_token_accuracy"), 100.0);
  EXPECT_EQ(compute_metric("first_token_accuracy", kOtherSystem, kReferences).value, 80.0);
}

TEST(Metric, Printed) {
  EXPECT_EQ(compute_metric("bleu", kHypotheses, kReferences).to_string(),
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tactus = 53.32 90.0/68.6/50.0/32.0 (BP = 0.951 "
            "ratio = 0.952 hyp_len = 40 ref_len = 42)");
  EXPECT_EQ(compute_metric("wer", kHypotheses, kReferences).to_string(),
            "WER|nrefs:1|case:mixed|tok:words|norm:none|version:tactus = 32.26 6 substitutions, 2 deletions, 2 "
            "insertions, 31 reference words");
  EXPECT_EQ(compute_metric("cer", {"abd"}, Lines{"abc"}).to_string(),
            "CER|nrefs:1|case:mixed|tok:chars|norm:none|version:tactus = 33.33 1 substitutions, 0 deletions, 0 "
            "insertions, 3 reference characters");
}

TEST(Metric, OptionsAndReferenceSets) {
  MetricOptions options;
  options.bleu.tokenizer = BleuTokenizer::kChar;
  const MetricScore chars = compute_metric("bleu", kHypotheses, kReferences, options);
  EXPECT_NEAR(chars.value, 82.30947424513808, 1e-9);
  EXPECT_EQ(chars.signature, "nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:tactus");
  EXPECT_NEAR(compute_metric("bleu", kHypotheses, std::vector<Lines>{kReferences, kSecondReferences}).value,
              58.345514717769696, 1e-9);
  EXPECT_EQ(message_of<ConfigError>([] {
              compute_metric("wer", kHypotheses, std::vector<Lines>{kReferences, kSecondReferences});
            }),
            "wer takes one set of references, got 2");
}

TEST(Metric, DirectionIsKnown) {
  for (const Metric& metric : all_metrics()) {
    const std::string name = metric.name;
    EXPECT_EQ(metric.higher_is_better, name != "wer" && name != "cer") << name;
    const double perfect = compute_metric(name, kReferences, kReferences).value;
    EXPECT_NEAR(perfect, metric.higher_is_better ? 100.0 : 0.0, 1e-9) << name;
  }
}

TEST(Metric, UnknownNamesNearestAndAll) {
  EXPECT_EQ(message_of<ConfigError>([] { find_metric("blue"); }),
            "unknown metric 'blue'; nearest: bleu; known: bleu, wer, cer, accuracy, first_token_accuracy");
  EXPECT_EQ(message_of<ConfigError>([] { compute_metric("perplexity-of-it", {"a"}, Lines{"a"}); }),
            "unknown metric 'perplexity-of-it'; known: bleu, wer, cer, accuracy, first_token_accuracy");
}

TEST(Metric, NameLists) {
  EXPECT_EQ(parse_metric_names("bleu, wer"), (Lines{"bleu", "wer"}));
  EXPECT_EQ(parse_metric_names("cer"), Lines{"cer"});
  EXPECT_THROW(parse_metric_names(""), ConfigError);
  EXPECT_THROW(parse_metric_names("bleu,"), ConfigError);
  EXPECT_THROW(parse_metric_names("bleu,nope"), ConfigError);
  EXPECT_EQ(message_of<ConfigError>([] { parse_metric_names("wer,bleu,wer"); }),
            "metric 'wer' is named twice in 'wer,bleu,wer'");
}

}  // namespace
}  // namespace tactus
