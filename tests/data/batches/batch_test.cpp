#include "data/batches/batch.h"

#include <algorithm>

#include "tests/data/batches/batch_test_util.h"

namespace tactus {
namespace {

class BatchTest : public FolderTest {
 protected:
  std::shared_ptr<const CorpusSplit> split(const std::vector<int64_t>& lengths, bool with_source = true) {
    write_toy_corpus(path("c.h5"), lengths, 8, with_source);
    return Corpus::open(path("c.h5")).split("train");
  }
};

TEST_F(BatchTest, ContentsArePacked) {
  auto s = split({10, 30, 20});
  BatchPlan plan = BatchPlan::for_evaluation(s, {.max_frames = 1000});
  Batch b = make_batch(plan, {.ctc = CtcTarget::source}, 0, 0);
  EXPECT_EQ(b.utterances, (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(b.frame_lengths, (std::vector<int64_t>{30, 20, 10}));
  EXPECT_EQ(b.frames(), 60);
  const std::vector<float> features = features_of(b);
  size_t token = 0, ctc = 0, row = 0;
  for (int64_t k = 0; k < b.size(); ++k) {
    int32_t i = b.utterances[k];
    EXPECT_EQ(b.ids[k], s->id(i));
    EXPECT_EQ(b.tgt_text[k], s->tgt_text(i));
    EXPECT_EQ(b.src_text[k], s->src_text(i));
    auto tokens = s->tgt_tokens()[i], source = s->src_tokens()[i];
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
    for (float x : frames) ASSERT_EQ(features[row++], x);
  }
  EXPECT_EQ(static_cast<size_t>(b.tokens()), token);
  EXPECT_EQ(b.ctc_tokens.size(), ctc);
}

TEST_F(BatchTest, CtcTargetsFollowTheirOptions) {
  auto s = split({10, 30, 20});
  BatchPlan plan = BatchPlan::for_evaluation(s, {});
  EXPECT_EQ(make_batch(plan, {.ctc = CtcTarget::target}, 0, 0).ctc_tokens, make_batch(plan, {}, 0, 0).target_tokens);
  Batch bare = make_batch(plan, {.ctc = CtcTarget::source, .ctc_eos = false}, 0, 0);
  EXPECT_EQ(std::count(bare.ctc_tokens.begin(), bare.ctc_tokens.end(), Tokenizer::kEos), 0);
  EXPECT_TRUE(make_batch(plan, {}, 0, 0).ctc_lengths.empty());
  auto plain = split({10, 30}, false);
  BatchPlan other = BatchPlan::for_evaluation(plain, {});
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { make_batch(other, {.ctc = CtcTarget::source}, 0, 0); }),
                       "source.vocab_size"));
  EXPECT_EQ(ctc_target_from_string("target"), CtcTarget::target);
  EXPECT_THROW(ctc_target_from_string("both"), ConfigError);
}

TEST_F(BatchTest, AugmentationIsForTrainingAndKnowsNoNeighbours) {
  auto s = split(varied_lengths(40));
  BatchPlan wide = BatchPlan::for_training(s, {.max_frames = 1000}, 5),
            narrow = BatchPlan::for_training(s, {.max_frames = 95}, 5);
  auto by_utterance = [&](const BatchPlan& plan, int64_t epoch) {
    std::vector<std::vector<float>> all(40);
    for (int64_t n = 0; n < plan.batches(); ++n) {
      Batch b = make_batch(plan, {}, epoch, n);
      const std::vector<float> features = features_of(b);
      auto from = features.begin();
      for (int64_t k = 0; k < b.size(); ++k) {
        all[b.utterances[k]].assign(from, from + b.frame_lengths[k] * 8);
        from += b.frame_lengths[k] * 8;
      }
    }
    return all;
  };
  EXPECT_EQ(by_utterance(wide, 2), by_utterance(narrow, 2));
  EXPECT_NE(by_utterance(wide, 2), by_utterance(wide, 3));
  EXPECT_EQ(by_utterance(BatchPlan::for_evaluation(s, {}), 2), by_utterance(BatchPlan::for_evaluation(s, {}), 3));
}

TEST_F(BatchTest, TypesHoldTheRoundedValues) {
  auto s = split(varied_lengths(20));
  const BatchPlan plan = BatchPlan::for_training(s, {}, 5);
  const std::vector<float> single = features_of(make_batch(plan, {}, 1, 0));
  EXPECT_EQ(features_of(make_batch(plan, {.dtype = DType::f64}, 1, 0)), single);
  const Batch half = make_batch(plan, {.dtype = DType::bf16}, 1, 0);
  EXPECT_EQ(half.frames(), static_cast<int64_t>(single.size()) / 8);
  for (size_t k = 0; k < single.size(); ++k) ASSERT_EQ(half.features.as<bf16>()[k].bits, bf16(single[k]).bits);
  EXPECT_THROW(make_batch(plan, {.dtype = DType::i32}, 1, 0), ShapeError);
  EXPECT_THROW(make_batch(plan, {.layers = 3}, 1, 0), ShapeError);
}

TEST_F(BatchTest, NormalisationIsAsAskedFor) {
  auto s = split({40, 20});
  const BatchPlan plan = BatchPlan::for_evaluation(s, {});
  std::vector<float> raw(60 * 8);
  s->read_frames(0, raw.data());
  s->read_frames(1, raw.data() + 40 * 8);
  const std::vector<float> none = features_of(make_batch(plan, {.normaliser = Normaliser(Cmvn::none)}, 0, 0));
  EXPECT_EQ(none, raw);
  const auto global = Normaliser::global(s->moments(), "c.h5");
  std::vector<float> expected = raw;
  global.apply(expected.data(), 60, 8);
  EXPECT_EQ(features_of(make_batch(plan, {.normaliser = global}, 0, 0)), expected);
  double sum = 0, squares = 0;
  for (int r = 0; r < 60; ++r) sum += expected[r * 8 + 3], squares += expected[r * 8 + 3] * expected[r * 8 + 3];
  EXPECT_NEAR(sum, 0, 1e-4);
  EXPECT_NEAR(squares / 60, 1, 1e-4);
  subtract_mean(raw.data(), 40, 8);
  subtract_mean(raw.data() + 40 * 8, 20, 8);
  EXPECT_EQ(features_of(make_batch(plan, {.normaliser = Normaliser(Cmvn::utterance_mean)}, 0, 0)), raw);
}

TEST_F(BatchTest, CutItemsAreTheirBeginning) {
  auto s = split({30, 10});
  const BatchOptions options{.max_source_frames = 12, .max_target_tokens = 4, .on_long = "truncate"};
  const BatchPlan plan = BatchPlan::for_training(s, options, 1);
  const BatchContents contents{.augment = {.enabled = false}, .normaliser = Normaliser(Cmvn::none)};
  const Batch b = make_batch(plan, contents, 0, 0);
  EXPECT_EQ(b.frame_lengths, (std::vector<int64_t>{12, 10}));
  std::vector<float> raw(30 * 8);
  s->read_frames(0, raw.data());
  raw.resize(12 * 8);
  const std::vector<float> all = features_of(b);
  EXPECT_TRUE(std::equal(raw.begin(), raw.end(), all.begin()));
  EXPECT_EQ(b.target_lengths, (std::vector<int64_t>{4, 4}));
  const std::vector<int32_t> tokens = s->tgt_tokens()[0];
  EXPECT_EQ(std::vector<int32_t>(b.target_tokens.begin(), b.target_tokens.begin() + 4),
            (std::vector<int32_t>{tokens[0], tokens[1], tokens[2], Tokenizer::kEos}));
  EXPECT_EQ(std::vector<int32_t>(b.previous_tokens.begin(), b.previous_tokens.begin() + 4),
            (std::vector<int32_t>{Tokenizer::kEos, tokens[0], tokens[1], tokens[2]}));
}

TEST_F(BatchTest, EmptyItemsAreKeptInEvaluation) {
  auto s = split({0, 20, 0});
  const BatchPlan plan = BatchPlan::for_evaluation(s, {});
  const Batch b = make_batch(plan, {}, 0, 0);
  EXPECT_EQ(b.size(), 3);
  EXPECT_EQ(b.frame_lengths, (std::vector<int64_t>{20, 0, 0}));
  const Batch none = make_batch(BatchPlan::for_evaluation(split({0, 0}), {}), {}, 0, 0);
  EXPECT_EQ(none.frames(), 0);
  EXPECT_EQ(none.size(), 2);
}

TEST_F(BatchTest, TextHasSourceTokensInPlaceOfFrames) {
  write_text_corpus(path("t.h5"), {{3, 2, 1}, {0, 0, 2}, {5, 1, 0}});
  auto s = Corpus::open(path("t.h5")).split("train");
  const BatchPlan plan = BatchPlan::for_evaluation(s, {});
  const Batch b = make_batch(plan, {}, 0, 0);
  EXPECT_EQ(b.utterances, (std::vector<int32_t>{2, 0, 1}));
  EXPECT_EQ(b.bins, 0);
  EXPECT_EQ(b.frames(), 0);
  EXPECT_TRUE(b.frame_lengths.empty());
  EXPECT_EQ(b.source_lengths, (std::vector<int64_t>{6, 4, 1}));
  EXPECT_EQ(b.source2_lengths, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(b.target_lengths, (std::vector<int64_t>{2, 3, 1}));
  EXPECT_EQ(b.source_tokens, (std::vector<int32_t>{4, 5, 6, 7, 8, 2, 4, 5, 6, 2, 2}));
  EXPECT_EQ(b.source2_tokens, (std::vector<int32_t>{2, 54, 2, 54, 53, 2}));
  EXPECT_EQ(b.source_rows(), 17);
  const Batch bare = make_batch(plan, {.source_eos = false}, 0, 0);
  EXPECT_EQ(bare.source_lengths, (std::vector<int64_t>{5, 3, 0}));
}

TEST_F(BatchTest, BuffersOfAPoolAreUsedAgain) {
  auto s = split(varied_lengths(60));
  const BatchOptions options{.max_frames = 300};
  const BatchPlan plan = BatchPlan::for_training(s, options, 1);
  const auto pool = HostPool::make(feature_bytes(plan, options, DType::f32));
  for (int64_t b = 0; b < plan.batches(); ++b) make_batch(plan, {.pool = pool}, 0, b);
  EXPECT_EQ(pool->use().allocations, 1);
}

}  // namespace
}  // namespace tactus
