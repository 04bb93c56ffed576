// Beam widths around the size of the vocabulary, with a random model.
#include <set>

#include "tests/laws/model_laws.h"
#include "train/search/beam_search.h"

namespace tactus::laws {
namespace {

constexpr int64_t kVocabulary = 9;

class BeamWidth : public ::testing::TestWithParam<int64_t> {};

TEST_P(BeamWidth, EveryHypothesisEndsOnceAndIsScoredAsByTheTrainingForm) {
  const Case c{"mtla", 2, Widths::even, Device::cpu, DType::f64};
  const Context ctx = Context::cpu(1);
  Speech model(ctx, c, kVocabulary);
  Tape tape(ctx, false);
  Tables tables(ctx);
  Pass pass{tape, tables};
  const std::vector<int64_t> lengths = {5, 1, 8};
  const std::vector<double> rows = normals(14 * kModelWidth, 17);
  const Var prompt = tape.constant(ctx.upload_real(rows, {14, kModelWidth}, DType::f64));
  SearchOptions o;
  o.beam = GetParam();
  o.max_length = 5;
  o.min_length = 0;
  const auto found =
      beam_search(model->decoder(), pass, prompt, Segments(ctx, lengths), lengths, o, {kEos, kEos, kPad});
  ASSERT_EQ(found.size(), lengths.size());
  int64_t begin = 0;
  for (size_t u = 0; u < lengths.size(); begin += lengths[u], ++u) {
    ASSERT_EQ(static_cast<int64_t>(found[u].size()), o.beam) << "an open search fills its beam";
    std::set<std::vector<int32_t>> distinct;
    const Var own_prompt = tape.constant(
        ctx.upload_real(rows_of(rows, begin, begin + lengths[u], kModelWidth), {lengths[u], kModelWidth}, DType::f64));
    for (const Hypothesis& h : found[u]) {
      EXPECT_TRUE(distinct.insert(h.tokens).second);
      EXPECT_EQ(h.tokens.back(), kEos);
      EXPECT_EQ(std::count(h.tokens.begin(), h.tokens.end(), kEos), 1);
      EXPECT_LE(h.tokens.size(), 6u) << "five tokens and eos";
      std::vector<int32_t> inputs = {kEos};
      inputs.insert(inputs.end(), h.tokens.begin(), h.tokens.end() - 1);
      const int64_t n = static_cast<int64_t>(inputs.size());
      const std::vector<double> logits =
          ctx.download_real(model->decoder()
                                .train(pass, TokenIndex::make(ctx, inputs, kVocabulary), own_prompt,
                                       Segments(ctx, {lengths[u]}), Segments(ctx, {n}))
                                .value());
      double total = 0;
      for (int64_t t = 0; t < n; ++t) {
        double sum = 0;
        for (int64_t w = 0; w < kVocabulary; ++w) sum += std::exp(logits[static_cast<size_t>(t * kVocabulary + w)]);
        total += logits[static_cast<size_t>(t * kVocabulary + h.tokens[static_cast<size_t>(t)])] - std::log(sum);
      }
      EXPECT_NEAR(h.score, total / static_cast<double>(n), 1e-9);
    }
    for (size_t j = 1; j < found[u].size(); ++j) EXPECT_GE(found[u][j - 1].score, found[u][j].score);
  }
}

// Beam 1, and one less than, equal to and beyond what the vocabulary can fill in one step.
INSTANTIATE_TEST_SUITE_P(Widths, BeamWidth, ::testing::Values(1, 2, kVocabulary - 1, kVocabulary, kVocabulary + 5));

TEST(BeamSearch, StopEndsItAndNoUtterancesIsNoWork) {
  const Case c{"mha", 1, Widths::even, Device::cpu, DType::f32};
  const Context ctx = Context::cpu(1);
  Speech model(ctx, c, kVocabulary);
  Tape tape(ctx, false);
  Tables tables(ctx);
  Pass pass{tape, tables};
  const Var prompt = tape.constant(ctx.upload_real(normals(4 * kModelWidth, 2), {4, kModelWidth}, DType::f32));
  EXPECT_THROW(beam_search(model->decoder(), pass, prompt, Segments(ctx, {4}), {4}, {}, {kEos, kEos, kPad}, nullptr,
                           [] { return true; }),
               Error);
  EXPECT_THROW(beam_search(model->decoder(), pass, prompt, Segments(ctx, {4}), {4, 4}, {}, {kEos, kEos, kPad}),
               ShapeError);
  const Var none = tape.constant(ctx.upload_real({}, {0, kModelWidth}, DType::f32));
  EXPECT_TRUE(beam_search(model->decoder(), pass, none, Segments(ctx, {}), {}, {}, {kEos, kEos, kPad}).empty());
}

}  // namespace
}  // namespace tactus::laws
