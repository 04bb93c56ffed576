// Laws of beam search: what it returns is what the training form says about the same tokens.
#include "train/search/beam_search.h"

#include <set>

#include "tests/laws/model_laws.h"

namespace tactus::laws {
namespace {

using Hypotheses = std::vector<std::vector<Hypothesis>>;

/// A decoder with random prompts; sharper than at initialisation, so that hypotheses differ.
class Searcher {
 public:
  Searcher(const Context& ctx, const Case& c, int64_t vocabulary, const std::vector<int64_t>& prompt_lengths)
      : model_(ctx, c, vocabulary),
        lengths_(prompt_lengths),
        prompt_(normals(sum_of(prompt_lengths) * kModelWidth, 41)),
        tape_(ctx, false),
        tables_(ctx),
        pass_{tape_, tables_} {
    Parameter* output = model_.store().find("decoder.output_projection.weight");
    std::vector<double> values = model_.store().read(*output);
    for (double& v : values) v *= 3;
    model_.store().write(*output, values);
  }
  Hypotheses search(const SearchOptions& o) { return search(o, lengths_, prompt_); }
  Hypotheses search_alone(const SearchOptions& o, size_t utterance) {
    return search(o, {lengths_[utterance]}, prompt_of(utterance));
  }
  /// Log-probabilities [tokens + 1, vocabulary] after start, token 0, token 1, ... from the training form.
  std::vector<std::vector<double>> log_probabilities(size_t utterance, const std::vector<int32_t>& tokens,
                                                     double temperature) {
    const Context& ctx = model_.ctx();
    std::vector<int32_t> inputs = {kEos};
    inputs.insert(inputs.end(), tokens.begin(), tokens.end());
    const int64_t rows = static_cast<int64_t>(inputs.size()), v = model_.vocabulary();
    const Segments prompt(ctx, {lengths_[utterance]}), own(ctx, {rows});
    const Var keys = tape_.constant(upload(prompt_of(utterance)));
    const std::vector<double> logits =
        ctx.download_real(model_->decoder().train(pass_, TokenIndex::make(ctx, inputs, v), keys, prompt, own).value());
    std::vector<std::vector<double>> out;
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<double> row = rows_of(logits, r, r + 1, v);
      double sum = 0;
      const double top = *std::max_element(row.begin(), row.end());
      for (double x : row) sum += std::exp((x - top) / temperature);
      for (double& x : row) x = (x - top) / temperature - std::log(sum);
      out.push_back(row);
    }
    return out;
  }

 private:
  std::vector<double> prompt_of(size_t utterance) const {
    int64_t begin = 0;
    for (size_t u = 0; u < utterance; ++u) begin += lengths_[u];
    return rows_of(prompt_, begin, begin + lengths_[utterance], kModelWidth);
  }
  Tensor upload(const std::vector<double>& rows) const {
    return model_.ctx().upload_real(rows, {static_cast<int64_t>(rows.size()) / kModelWidth, kModelWidth},
                                    model_.dtype());
  }
  Hypotheses search(const SearchOptions& o, const std::vector<int64_t>& lengths, const std::vector<double>& prompt) {
    const Segments segments(model_.ctx(), lengths);
    return beam_search(model_->decoder(), pass_, tape_.constant(upload(prompt)), segments, lengths, o,
                       {kEos, kEos, kPad});
  }
  Speech model_;
  std::vector<int64_t> lengths_;
  std::vector<double> prompt_;
  Tape tape_;
  Tables tables_;
  Pass pass_;
};

class BeamSearch : public LawSuite {
 protected:
  const Context& ctx() const { return shared_context(GetParam().device); }
  double tolerance() const { return pick(1e-11, 1e-5, 1e-4, 6e-2); }
  /// Ties within rounding may be broken either way, so tokens are compared in exact enough types only.
  bool compares_tokens() const { return dtype() != DType::bf16; }
};

const std::vector<int64_t> kPrompts = {7, 0, 1, 12};

TEST_P(BeamSearch, BeamOneIsGreedy) {
  Searcher s(ctx(), GetParam(), 11, kPrompts);
  SearchOptions o;
  o.beam = 1;
  o.max_length = 9;
  const Hypotheses found = s.search(o);
  if (!compares_tokens()) GTEST_SKIP() << "near ties";
  for (size_t u = 0; u < kPrompts.size(); ++u) {
    std::vector<int32_t> tokens;
    while (tokens.empty() || tokens.back() != kEos) {
      std::vector<double> p = s.log_probabilities(u, tokens, 1).back();
      p[kPad] = -HUGE_VAL;
      if (tokens.empty()) p[kEos] = -HUGE_VAL;
      if (static_cast<int64_t>(tokens.size()) == o.max_length) {
        tokens.push_back(kEos);
      } else {
        tokens.push_back(static_cast<int32_t>(std::max_element(p.begin(), p.end()) - p.begin()));
      }
    }
    ASSERT_EQ(found[u].size(), 1u);
    EXPECT_EQ(found[u][0].tokens, tokens) << "utterance " << u;
  }
}

TEST_P(BeamSearch, ScoresEqualRescoring) {
  Searcher s(ctx(), GetParam(), 11, kPrompts);
  SearchOptions o;
  o.beam = 4;
  o.temperature = 0.8;
  o.length_penalty = 0.7;
  o.min_length = 2;
  o.max_length_ratio = 0.5;
  o.max_length = 4;
  const Hypotheses found = s.search(o);
  for (size_t u = 0; u < kPrompts.size(); ++u) {
    ASSERT_FALSE(found[u].empty());
    EXPECT_LE(found[u].size(), 4u);
    std::set<std::vector<int32_t>> distinct;
    for (size_t j = 0; j < found[u].size(); ++j) {
      const Hypothesis& h = found[u][j];
      EXPECT_TRUE(distinct.insert(h.tokens).second) << "the same hypothesis twice";
      EXPECT_GE(found[u][j > 0 ? j - 1 : j].score, h.score);
      EXPECT_EQ(std::count(h.tokens.begin(), h.tokens.end(), kEos), 1);
      EXPECT_EQ(h.tokens.back(), kEos);
      EXPECT_EQ(std::count(h.tokens.begin(), h.tokens.end(), kPad), 0);
      EXPECT_GE(h.tokens.size(), 3u);
      EXPECT_LE(static_cast<int64_t>(h.tokens.size()), kPrompts[u] / 2 + 4 + 1);
      const auto p = s.log_probabilities(u, h.tokens, o.temperature);
      std::vector<double> scores;
      double total = 0;
      for (size_t t = 0; t < h.tokens.size(); ++t) {
        scores.push_back(p[t][static_cast<size_t>(h.tokens[t])]);
        total += scores.back();
      }
      EXPECT_LE(error_of(h.scores, scores), tolerance());
      EXPECT_LE(error_of({h.score}, {total / std::pow(static_cast<double>(scores.size()), 0.7)}), tolerance());
    }
  }
}

TEST_P(BeamSearch, BatchedEqualsAlone) {
  Searcher s(ctx(), GetParam(), 11, kPrompts);
  SearchOptions o;
  o.beam = 3;
  o.max_length_ratio = 0.6;
  o.max_length = 3;
  const Hypotheses found = s.search(o);
  if (!compares_tokens()) GTEST_SKIP() << "near ties";
  for (size_t u = 0; u < kPrompts.size(); ++u) {
    const std::vector<Hypothesis> alone = s.search_alone(o, u)[0];
    ASSERT_EQ(found[u].size(), alone.size());
    for (size_t j = 0; j < alone.size(); ++j) {
      EXPECT_EQ(found[u][j].tokens, alone[j].tokens) << "utterance " << u << " hypothesis " << j;
      EXPECT_LE(error_of({found[u][j].score}, {alone[j].score}), tolerance());
    }
  }
}

TEST_P(BeamSearch, WideBeamFindsEverything) {
  // Vocabulary: 0, pad, eos, 3, 4. With two tokens at most before eos there are 3 + 9 outputs.
  Searcher s(ctx(), GetParam(), 5, {5, 0});
  SearchOptions o;
  o.beam = 30;
  o.max_length = 2;
  const Hypotheses found = s.search(o);
  for (size_t u = 0; u < 2; ++u) {
    std::vector<double> scores;
    const std::vector<int32_t> words = {0, 3, 4};
    for (int32_t a : words) {
      const auto after_one = s.log_probabilities(u, {a}, 1);
      const double first = after_one[0][static_cast<size_t>(a)];
      scores.push_back((first + after_one[1][kEos]) / 2);
      for (int32_t b : words)
        scores.push_back((first + after_one[1][static_cast<size_t>(b)] + s.log_probabilities(u, {a, b}, 1)[2][kEos]) /
                         3);
    }
    std::sort(scores.rbegin(), scores.rend());
    std::vector<double> got;
    for (const Hypothesis& h : found[u]) got.push_back(h.score);
    EXPECT_LE(error_of(got, scores), tolerance()) << got.size() << " outputs for utterance " << u;
  }
}

TEST_P(BeamSearch, LengthZeroIsEosAlone) {
  Searcher s(ctx(), GetParam(), 11, {4, 2});
  SearchOptions o;
  o.beam = 3;
  o.min_length = 0;
  o.max_length = 0;
  for (const std::vector<Hypothesis>& h : s.search(o)) {
    ASSERT_EQ(h.size(), 1u);
    EXPECT_EQ(h[0].tokens, std::vector<int32_t>{kEos});
  }
}

const std::vector<int64_t> kStrides = {2, 3};
INSTANTIATE_TEST_SUITE_P(Cpu, BeamSearch, ::testing::ValuesIn(cases(Device::cpu, kStrides)), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, BeamSearch, ::testing::ValuesIn(cases(Device::cuda, kStrides)), case_name);

}  // namespace
}  // namespace tactus::laws
