#include "data/batches/batch_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/data/batches/batch_test_util.h"

namespace tactus {
namespace {

class BatchPlanTest : public FolderTest {
 protected:
  std::shared_ptr<const CorpusSplit> split(const std::vector<int64_t>& lengths, bool with_source = true) {
    write_toy_corpus(path("c.h5"), lengths, 8, with_source);
    return Corpus::open(path("c.h5")).split("train");
  }
  std::shared_ptr<const CorpusSplit> text(const std::vector<TextLengths>& lengths) {
    write_text_corpus(path("t.h5"), lengths);
    return Corpus::open(path("t.h5")).split("train");
  }
  static int64_t frames_of(const BatchPlan& plan, int64_t number) {
    int64_t frames = 0;
    for (int32_t i : plan.batch(number)) frames += plan.split_of(number)->frames(i);
    return frames;
  }
};

TEST_F(BatchPlanTest, PlansPackByFramesAndVisitEveryUtteranceOnce) {
  auto s = split(varied_lengths(120));
  BatchPlan plan = BatchPlan::for_training(s, {.max_frames = 300, .max_utterances = 9}, 1);
  std::set<int32_t> seen;
  int64_t previous = 1 << 20;
  for (int64_t b = 0; b < plan.batches(); ++b) {
    int64_t frames = 0;
    for (int32_t i : plan.batch(b)) {
      EXPECT_LE(s->frames(i), previous);
      previous = s->frames(i);
      frames += s->frames(i);
      EXPECT_TRUE(seen.insert(i).second);
    }
    EXPECT_LE(frames, 300);
    EXPECT_LE(plan.batch(b).size(), 9u);
    // Greedy: the next utterance would not have fitted.
    if (b + 1 < plan.batches() && plan.batch(b).size() < 9) {
      EXPECT_GT(frames + s->frames(plan.batch(b + 1)[0]), 300);
    }
  }
  EXPECT_EQ(seen.size(), 120u);
  EXPECT_EQ(plan.utterances(), 120);
  EXPECT_EQ(plan.drops().dropped(), 0);
}

TEST_F(BatchPlanTest, OrderIsAFunctionOfSeedAndEpoch) {
  auto s = split(varied_lengths(120));
  BatchPlan a = BatchPlan::for_training(s, {.max_frames = 200}, 1),
            b = BatchPlan::for_training(s, {.max_frames = 200}, 1);
  BatchPlan c = BatchPlan::for_training(s, {.max_frames = 200}, 2);
  std::vector<int32_t> third = a.order(3), identity(a.batches());
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_EQ(third, b.order(3));
  EXPECT_EQ(third, a.order(3));
  EXPECT_NE(third, a.order(4));
  EXPECT_NE(third, c.order(3));
  EXPECT_NE(third, identity);
  std::sort(third.begin(), third.end());
  EXPECT_EQ(third, identity);
  BatchPlan evaluation = BatchPlan::for_evaluation(s, {.max_frames = 200});
  EXPECT_EQ(evaluation.order(0), identity);
  EXPECT_EQ(evaluation.order(7), identity);
}

TEST_F(BatchPlanTest, UnfitUtterancesAreCountedAndNamed) {
  auto s = split({10, 3, 80, 20, 90, 60, 10, 10, 10, 4});
  BatchPlan plan = BatchPlan::for_training(s, {.max_frames = 70, .max_source_frames = 85}, 1);
  EXPECT_EQ(plan.drops().dropped(), 4);
  const DropCounts& reasons = plan.drops().reasons;
  EXPECT_EQ(reasons.at("min_source_frames").ids, (std::vector<std::string>{"utt1", "utt9"}));
  EXPECT_EQ(reasons.at("min_source_frames").first, "utt1 has 3, min_source_frames is 5");
  EXPECT_EQ(reasons.at("max_source_frames").ids, std::vector<std::string>{"utt4"});
  EXPECT_EQ(reasons.at("max_frames").ids, std::vector<std::string>{"utt2"});
  EXPECT_EQ(plan.utterances(), 6);
  EXPECT_TRUE(contains(plan.drops().to_string(), "4 of 10 utterances dropped"));
  auto tokens = s->tgt_tokens().length(0);
  BatchPlan exact = BatchPlan::for_training(s, {.max_target_tokens = 60}, 1);
  EXPECT_EQ(exact.drops().reasons.count("max_target_tokens"), 0u);
  EXPECT_TRUE(contains(message_of<DataError>([&] { BatchPlan::for_training(s, {.max_target_tokens = tokens / 2}, 1); }),
                       "max_target_tokens (utt0, "));
}

TEST_F(BatchPlanTest, DroppingMoreThanHalfIsRefused) {
  auto s = split({10, 10, 80, 80});
  EXPECT_EQ(BatchPlan::for_training(s, {.max_source_frames = 50}, 1).utterances(), 2);
  auto t = split({10, 80, 80, 80});
  std::string message = message_of<DataError>([&] { BatchPlan::for_training(t, {.max_source_frames = 50}, 1); });
  EXPECT_TRUE(contains(message, "3 of 4 utterances dropped: 3 max_source_frames (utt1, utt2, utt3; first: "))
      << message;
  EXPECT_THROW(BatchPlan::for_training(split({}), {}, 1), DataError);
}

TEST_F(BatchPlanTest, EvaluationKeepsEveryUtterance) {
  auto s = split({10, 3, 500, 20});
  BatchPlan plan = BatchPlan::for_evaluation(s, {.max_frames = 40, .max_source_frames = 15, .max_target_tokens = 2});
  ASSERT_EQ(plan.batches(), 2);
  EXPECT_EQ(items(plan, 0), std::vector<int32_t>{2});
  EXPECT_EQ(items(plan, 1), (std::vector<int32_t>{3, 0, 1}));
  EXPECT_EQ(BatchPlan::for_evaluation(split({}), {}).batches(), 0);
}

TEST_F(BatchPlanTest, TheFirstEpochBeginsWithTheLargestBatch) {
  auto s = split(varied_lengths(120));
  const BatchPlan plan = BatchPlan::for_training(s, {.grouping = "random", .max_frames = 200}, 5);
  int64_t most = 0;
  for (int64_t b = 0; b < plan.batches(); ++b) most = std::max(most, plan.source_rows(b));
  EXPECT_EQ(plan.order(0).front(), plan.largest());
  EXPECT_GE(plan.source_rows(plan.largest()), most - 60);
  int first = 0;
  for (int64_t epoch = 1; epoch < 40; ++epoch) first += plan.order(epoch).front() == plan.largest();
  EXPECT_LT(first, 10);
}

TEST_F(BatchPlanTest, SizesAreMultiplesWherePossible) {
  auto s = split(varied_lengths(203));
  const BatchPlan plan = BatchPlan::for_training(s, {.max_frames = 700, .multiple_of = 8}, 1);
  std::set<int32_t> seen;
  for (int64_t b = 0; b < plan.batches(); ++b) {
    const std::vector<int32_t> batch = items(plan, b);
    seen.insert(batch.begin(), batch.end());
    EXPECT_LE(frames_of(plan, b), 700);
    // Eight of the longest do not fit.
    if (batch.size() > 8 && b + 1 < plan.batches()) {
      EXPECT_EQ(batch.size() % 8, 0u);
    }
  }
  EXPECT_EQ(seen.size(), 203u);
}

TEST_F(BatchPlanTest, BucketsMixNeighboursInLengthAlone) {
  auto s = split(varied_lengths(180));
  const BatchPlan plan = BatchPlan::for_training(s, {.grouping = "buckets", .buckets = 6, .max_frames = 400}, 3);
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < plan.batches(); ++b) {
    for (int32_t i : plan.batch(b)) lengths.push_back(s->frames(i));
  }
  ASSERT_EQ(lengths.size(), 180u);
  EXPECT_FALSE(std::is_sorted(lengths.begin(), lengths.end(), std::greater<>()));
  for (int k = 0; k + 1 < 6; ++k) {
    const auto begin = lengths.begin() + 30 * k;
    EXPECT_GE(*std::min_element(begin, begin + 30), *std::max_element(begin + 30, begin + 60));
  }
  const BatchPlan other = BatchPlan::for_training(s, {.grouping = "buckets", .buckets = 6, .max_frames = 400}, 4);
  EXPECT_NE(items(plan, 0), items(other, 0));
}

TEST_F(BatchPlanTest, LongItemsAreCutOrRefused) {
  auto s = split({10, 20, 90, 30});
  const BatchPlan cut = BatchPlan::for_training(s, {.max_source_frames = 25, .on_long = "truncate"}, 1);
  EXPECT_EQ(cut.utterances(), 4);
  EXPECT_EQ(cut.drops().truncated.at("max_source_frames").ids, (std::vector<std::string>{"utt2", "utt3"}));
  EXPECT_TRUE(contains(cut.drops().to_string(), "2 truncated: 2 max_source_frames (utt2, utt3"))
      << cut.drops().to_string();
  EXPECT_EQ(cut.source_limit(), 25);
  EXPECT_EQ(cut.source_rows(0), 25 + 25 + 20 + 10);
  const std::string said =
      message_of<DataError>([&] { BatchPlan::for_training(s, {.max_source_frames = 25, .on_long = "error"}, 1); });
  EXPECT_TRUE(contains(said, "2 max_source_frames (utt2, utt3; first: utt2 has 90, max_source_frames is 25)")) << said;
  EXPECT_EQ(BatchPlan::for_evaluation(s, {.max_source_frames = 25, .on_long = "truncate"}).source_rows(0), 150);
}

TEST_F(BatchPlanTest, TextIsPackedByTokensOfBothSides) {
  auto s = text({{4, 9}, {30, 2}, {10, 10}, {0, 5}, {5, 0}, {8, 8}, {20, 3}});
  BatchOptions o{.max_tokens = 32, .max_source_tokens = 25};
  const BatchPlan plan = BatchPlan::for_training(s, o, 1);
  EXPECT_EQ(plan.drops().reasons.at("min_source_tokens").ids, std::vector<std::string>{"text3"});
  EXPECT_EQ(plan.drops().reasons.at("empty_target").ids, std::vector<std::string>{"text4"});
  EXPECT_EQ(plan.drops().reasons.at("max_source_tokens").ids, std::vector<std::string>{"text1"});
  // 20 + 10 source tokens; then 8 + 4.
  ASSERT_EQ(plan.batches(), 2);
  EXPECT_EQ(items(plan, 0), (std::vector<int32_t>{6, 2}));
  EXPECT_EQ(items(plan, 1), (std::vector<int32_t>{5, 0}));
  o.max_tokens = 18;  // targets with </s>: 9 and 10
  o.max_source_tokens = 16;
  const BatchPlan narrow =
      BatchPlan::for_training(s, {.max_tokens = 18, .max_source_tokens = 16, .on_long = "truncate"}, 1);
  EXPECT_EQ(narrow.batches(), 5);
  const BatchPlan all = BatchPlan::for_evaluation(s, o);
  EXPECT_EQ(all.utterances(), 7);
}

TEST_F(BatchPlanTest, PairsCountBothDocuments) {
  auto s = text({{10, 1, 12}, {20, 1, 20}, {6, 1, 6}, {7, 1, 0}, {5, 1, 26}, {3, 1, 3}, {2, 1, 2}});
  const BatchPlan plan = BatchPlan::for_training(s, {.max_tokens = 34, .max_source_tokens = 25}, 1);
  EXPECT_EQ(items(plan, 0), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(items(plan, 1), (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(plan.drops().reasons.at("max_tokens").ids, std::vector<std::string>{"text1"});
  EXPECT_EQ(plan.drops().reasons.at("max_source_tokens").ids, std::vector<std::string>{"text4"});
  EXPECT_EQ(plan.drops().reasons.at("min_source_tokens").ids, std::vector<std::string>{"text3"});
}

TEST_F(BatchPlanTest, SplitsWithoutSourcesAreRefused) {
  CorpusOptions options;
  options.features.kind = "none";
  CorpusWriter writer(path("n.h5"), options,
                      Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 60}, "toy"), {});
  writer.begin_split("train", SplitColumns());
  writer.add(toy_item(1), std::span<const float>());
  writer.end_split(report_json(1, 1, 0, {}));
  writer.commit();
  auto s = Corpus::open(path("n.h5")).split("train");
  EXPECT_TRUE(
      contains(message_of<ConfigError>([&] { BatchPlan::for_training(s, {}, 1); }), "neither frames nor source"));
}

TEST(Apportion, GivesSharesThatSumUp) {
  EXPECT_EQ(apportion({1, 1, 2}, 8), (std::vector<int64_t>{2, 2, 4}));
  EXPECT_EQ(apportion({1, 1, 1}, 10), (std::vector<int64_t>{4, 3, 3}));
  EXPECT_EQ(apportion({1e-9, 1, 1}, 5), (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(apportion({3}, 7), std::vector<int64_t>{7});
  EXPECT_EQ(apportion({1, 1}, 2), (std::vector<int64_t>{1, 1}));
}

class MixtureTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    int64_t number = 0;
    for (int64_t count : {100, 30, 10}) {
      write_toy_corpus(path("m.h5"), varied_lengths(count));
      parts_.push_back({"part" + std::to_string(number++), Corpus::open(path("m.h5")).split("train"), 1});
    }
  }
  /// How often each batch comes in some epochs.
  static std::vector<int64_t> visits(const BatchPlan& plan, int64_t epochs) {
    std::vector<int64_t> count(static_cast<size_t>(plan.batches()));
    for (int64_t e = 0; e < epochs; ++e) {
      const std::vector<int32_t> order = plan.order(e);
      EXPECT_EQ(static_cast<int64_t>(order.size()), plan.batches());
      for (int32_t b : order) ++count[b];
    }
    return count;
  }
  std::vector<TrainingPart> parts_;
};

TEST_F(MixtureTest, BatchesAreOfOneCorpusAndUtterancesHaveNumbersOfTheirOwn) {
  const BatchPlan plan = BatchPlan::for_mixture(parts_, {.max_frames = 200}, 1, 7);
  std::set<int32_t> numbers;
  for (int64_t b = 0; b < plan.batches(); ++b) {
    for (int32_t i : plan.batch(b)) {
      EXPECT_LT(i, plan.split_of(b)->size());
      EXPECT_TRUE(numbers.insert(plan.first_utterance(b) + i).second);
    }
  }
  EXPECT_EQ(numbers.size(), 140u);
  EXPECT_EQ(*numbers.rbegin(), 139);
  EXPECT_EQ(plan.utterances(), 140);
  // Shares in proportion to size: one pass through everything.
  for (int64_t v : visits(plan, 3)) EXPECT_EQ(v, 3);
}

TEST_F(MixtureTest, SharesFollowWeightsAndTemperature) {
  const int64_t total = BatchPlan::for_mixture(parts_, {.max_frames = 200}, 1, 7).batches();
  const auto shares = [&](const BatchPlan& plan) {
    std::map<std::string, int64_t> share;
    for (int32_t b : plan.order(2)) ++share[std::to_string(plan.split_of(b)->size())];
    return share;
  };
  parts_[2].weight = 1000;
  auto heavy = shares(BatchPlan::for_mixture(parts_, {.max_frames = 200}, 1, 7));
  EXPECT_GT(heavy["10"], total * 9 / 10);
  EXPECT_GE(heavy["30"], 1);
  parts_[2].weight = 1;
  auto even = shares(BatchPlan::for_mixture(parts_, {.max_frames = 200}, 1e6, 7));
  for (auto& [size, share] : even) EXPECT_NEAR(static_cast<double>(share), static_cast<double>(total) / 3, 1) << size;
}

TEST_F(MixtureTest, PassesGoThroughEveryBatchBeforeOneComesAgain) {
  const BatchPlan plan = BatchPlan::for_mixture(parts_, {.max_frames = 200}, 4, 7);
  const std::vector<int64_t> count = visits(plan, 50);
  std::map<const CorpusSplit*, std::pair<int64_t, int64_t>> range;
  for (int64_t b = 0; b < plan.batches(); ++b) {
    auto [it, fresh] = range.try_emplace(plan.split_of(b).get(), count[b], count[b]);
    it->second = {std::min(it->second.first, count[b]), std::max(it->second.second, count[b])};
  }
  for (const auto& [split, least_most] : range) EXPECT_LE(least_most.second - least_most.first, 1);
  EXPECT_EQ(plan.order(17), BatchPlan::for_mixture(parts_, {.max_frames = 200}, 4, 7).order(17));
  EXPECT_NE(plan.order(17), plan.order(18));
  EXPECT_NE(plan.fingerprint(), BatchPlan::for_mixture(parts_, {.max_frames = 200}, 1, 7).fingerprint());
}

}  // namespace
}  // namespace tactus
