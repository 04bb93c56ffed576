#include "data/batches.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

class BatchesTest : public FolderTest {
 protected:
  std::shared_ptr<const CorpusSplit> split(const std::vector<int64_t>& lengths, bool with_source = true) {
    write_toy_corpus(path("c.h5"), lengths, 8, with_source);
    return Corpus::open(path("c.h5")).split("train");
  }
  static std::vector<int64_t> varied(int64_t count) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < count; ++i) lengths.push_back(5 + i * 37 % 90);
    return lengths;
  }
};

TEST_F(BatchesTest, PlansPackByFramesAndVisitEveryUtteranceOnce) {
  auto s = split(varied(120));
  BatchPlan plan = BatchPlan::for_training(*s, {.max_frames = 300, .max_utterances = 9}, 1);
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

TEST_F(BatchesTest, OrderIsAFunctionOfSeedAndEpoch) {
  auto s = split(varied(120));
  BatchPlan a = BatchPlan::for_training(*s, {.max_frames = 200}, 1),
            b = BatchPlan::for_training(*s, {.max_frames = 200}, 1);
  BatchPlan c = BatchPlan::for_training(*s, {.max_frames = 200}, 2);
  std::vector<int32_t> third = a.order(3), identity(a.batches());
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_EQ(third, b.order(3));
  EXPECT_EQ(third, a.order(3));
  EXPECT_NE(third, a.order(4));
  EXPECT_NE(third, c.order(3));
  EXPECT_NE(third, identity);
  std::sort(third.begin(), third.end());
  EXPECT_EQ(third, identity);
  BatchPlan evaluation = BatchPlan::for_evaluation(*s, {.max_frames = 200});
  EXPECT_EQ(evaluation.order(0), identity);
  EXPECT_EQ(evaluation.order(7), identity);
}

TEST_F(BatchesTest, UnfitUtterancesAreCountedAndNamed) {
  auto s = split({10, 3, 80, 20, 90, 60, 10, 10, 10, 4});
  BatchPlan plan = BatchPlan::for_training(*s, {.max_frames = 70, .max_source_frames = 85}, 1);
  EXPECT_EQ(plan.drops().dropped(), 4);
  EXPECT_EQ(plan.drops().reasons.at("min_source_frames").first, "utt1, utt9");
  EXPECT_EQ(plan.drops().reasons.at("max_source_frames").first, "utt4");
  EXPECT_EQ(plan.drops().reasons.at("max_frames").first, "utt2");
  EXPECT_EQ(plan.utterances(), 6);
  EXPECT_TRUE(contains(plan.drops().to_string(), "4 of 10 utterances dropped"));
  auto tokens = static_cast<int64_t>(s->tgt_tokens(0).size());
  BatchPlan exact = BatchPlan::for_training(*s, {.max_target_tokens = 60}, 1);
  EXPECT_EQ(exact.drops().reasons.count("max_target_tokens"), 0u);
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { BatchPlan::for_training(*s, {.max_target_tokens = tokens / 2}, 1); }),
               "max_target_tokens (first: utt0"));
}

TEST_F(BatchesTest, DroppingMoreThanHalfIsRefused) {
  auto s = split({10, 10, 80, 80});
  EXPECT_EQ(BatchPlan::for_training(*s, {.max_source_frames = 50}, 1).utterances(), 2);
  auto t = split({10, 80, 80, 80});
  std::string message = message_of<DataError>([&] { BatchPlan::for_training(*t, {.max_source_frames = 50}, 1); });
  EXPECT_TRUE(contains(message, "3 of 4 utterances dropped: 3 max_source_frames (first: utt1, utt2, utt3)")) << message;
  EXPECT_THROW(BatchPlan::for_training(*split({}), {}, 1), DataError);
}

TEST_F(BatchesTest, EvaluationKeepsEveryUtterance) {
  auto s = split({10, 3, 500, 20});
  BatchPlan plan = BatchPlan::for_evaluation(*s, {.max_frames = 40, .max_source_frames = 15, .max_target_tokens = 2});
  ASSERT_EQ(plan.batches(), 2);
  EXPECT_EQ(plan.batch(0), std::vector<int32_t>{2});
  EXPECT_EQ(plan.batch(1), (std::vector<int32_t>{3, 0, 1}));
  EXPECT_EQ(BatchPlan::for_evaluation(*split({}), {}).batches(), 0);
}

TEST_F(BatchesTest, ContentsArePacked) {
  auto s = split({10, 30, 20});
  BatchPlan plan = BatchPlan::for_evaluation(*s, {.max_frames = 1000});
  Batch b = make_batch(s, plan, {.ctc = CtcTarget::source}, 0, 0);
  EXPECT_EQ(b.utterances, (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(b.frame_lengths, (std::vector<int64_t>{30, 20, 10}));
  EXPECT_EQ(b.frames(), 60);
  size_t token = 0, ctc = 0, row = 0;
  for (int64_t k = 0; k < b.size(); ++k) {
    int32_t i = b.utterances[k];
    EXPECT_EQ(b.ids[k], s->id(i));
    EXPECT_EQ(b.tgt_text[k], s->tgt_text(i));
    EXPECT_EQ(b.src_text[k], s->src_text(i));
    auto tokens = s->tgt_tokens(i), source = s->src_tokens(i);
    ASSERT_EQ(b.target_lengths[k], static_cast<int64_t>(tokens.size()) + 1);
    EXPECT_EQ(b.previous_tokens[token], Tokenizer::kEos);
    for (size_t t = 0; t < tokens.size(); ++t) {
      EXPECT_EQ(b.previous_tokens[token + t + 1], tokens[t]);
      EXPECT_EQ(b.target_tokens[token + t], tokens[t]);
    }
    token += tokens.size() + 1;
    EXPECT_EQ(b.target_tokens[token - 1], Tokenizer::kEos);
    ASSERT_EQ(b.ctc_lengths[k], static_cast<int64_t>(source.size()) + 1);
    for (size_t t = 0; t < source.size(); ++t) EXPECT_EQ(b.ctc_tokens[ctc + t], source[t]);
    ctc += source.size() + 1;
    EXPECT_EQ(b.ctc_tokens[ctc - 1], Tokenizer::kEos);
    std::vector<float> frames(s->frames(i) * 8);
    s->read_frames(i, frames.data());
    apply_cmvn(frames.data(), s->frames(i), 8);
    for (float x : frames) ASSERT_EQ(b.features[row++], x);
  }
  EXPECT_EQ(static_cast<size_t>(b.tokens()), token);
  EXPECT_EQ(b.ctc_tokens.size(), ctc);
}

TEST_F(BatchesTest, CtcTargetsFollowTheirOptions) {
  auto s = split({10, 30, 20});
  BatchPlan plan = BatchPlan::for_evaluation(*s, {});
  EXPECT_EQ(make_batch(s, plan, {.ctc = CtcTarget::target}, 0, 0).ctc_tokens,
            make_batch(s, plan, {}, 0, 0).target_tokens);
  Batch bare = make_batch(s, plan, {.ctc = CtcTarget::source, .ctc_eos = false}, 0, 0);
  EXPECT_EQ(std::count(bare.ctc_tokens.begin(), bare.ctc_tokens.end(), Tokenizer::kEos), 0);
  EXPECT_TRUE(make_batch(s, plan, {}, 0, 0).ctc_lengths.empty());
  auto plain = split({10, 30}, false);
  BatchPlan other = BatchPlan::for_evaluation(*plain, {});
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { make_batch(plain, other, {.ctc = CtcTarget::source}, 0, 0); }),
                       "source.vocab_size"));
  EXPECT_EQ(ctc_target_from_string("target"), CtcTarget::target);
  EXPECT_THROW(ctc_target_from_string("both"), ConfigError);
}

TEST_F(BatchesTest, AugmentationIsForTrainingAndKnowsNoNeighbours) {
  auto s = split(varied(40));
  BatchPlan wide = BatchPlan::for_training(*s, {.max_frames = 1000}, 5),
            narrow = BatchPlan::for_training(*s, {.max_frames = 95}, 5);
  auto features_of = [&](const BatchPlan& plan, int64_t epoch) {
    std::vector<std::vector<float>> all(40);
    for (int64_t n = 0; n < plan.batches(); ++n) {
      Batch b = make_batch(s, plan, {}, epoch, n);
      auto from = b.features.begin();
      for (int64_t k = 0; k < b.size(); ++k) {
        all[b.utterances[k]].assign(from, from + b.frame_lengths[k] * 8);
        from += b.frame_lengths[k] * 8;
      }
    }
    return all;
  };
  EXPECT_EQ(features_of(wide, 2), features_of(narrow, 2));
  EXPECT_NE(features_of(wide, 2), features_of(wide, 3));
  EXPECT_EQ(features_of(BatchPlan::for_evaluation(*s, {}), 2), features_of(BatchPlan::for_evaluation(*s, {}), 3));
}

}  // namespace
}  // namespace tactus
