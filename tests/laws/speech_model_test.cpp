// Laws of whole models: a packed batch equals its sentences alone, and decoding equals training.
#include "tests/laws/model_laws.h"

namespace tactus::laws {
namespace {

struct Losses {
  double total = 0, smoothed = 0, ctc = 0;
  int64_t infeasible = 0;
  std::vector<double> gradient;
};

Losses losses(Speech& model, const std::vector<Utterance>& utterances, bool dropout) {
  const Context& ctx = model.ctx();
  Tape tape(ctx);
  Tables tables(ctx);
  Pass pass{tape, tables, dropout, 5};
  LossOptions options;
  options.ctc_weight = 0.7;
  const SpeechLoss loss = model->loss(pass, model.batch(utterances), options);
  Losses out;
  out.total = ctx.download_real(loss.total.value())[0];
  out.smoothed = ctx.download_real(loss.smoothed)[0];
  out.ctc = ctx.download_real(loss.ctc)[0];
  out.infeasible = loss.ctc_infeasible;
  model.store().zero_grad();
  tape.backward(loss.total);
  out.gradient = ctx.download_real(model.store().flat_grad());
  return out;
}

class SpeechModels : public LawSuite {
 protected:
  const Context& ctx() const { return shared_context(GetParam().device); }
};

TEST_P(SpeechModels, PackedEqualsAlone) {
  for (bool dropout : {false, true}) {
    Speech model(ctx(), GetParam(), 11, 0.2);
    const std::vector<Utterance> all = model.utterances({23, 9, 1, 30, 14}, {6, 1, 3, 0, 4});
    const Losses packed = losses(model, all, dropout);
    Losses sum;
    for (const Utterance& u : all) {
      const Losses alone = losses(model, {u}, dropout);
      sum.total += alone.total;
      sum.smoothed += alone.smoothed;
      sum.ctc += alone.ctc;
      sum.infeasible += alone.infeasible;
      sum.gradient.resize(alone.gradient.size());
      for (size_t i = 0; i < sum.gradient.size(); ++i) sum.gradient[i] += alone.gradient[i];
    }
    const double tolerance = pick(1e-13, 1e-6, 1e-5, 1e-2);
    EXPECT_LE(error_of({packed.total}, {sum.total}), tolerance) << "dropout " << dropout;
    EXPECT_LE(error_of({packed.smoothed}, {sum.smoothed}), tolerance) << "dropout " << dropout;
    EXPECT_LE(error_of({packed.ctc}, {sum.ctc}), tolerance) << "dropout " << dropout;
    EXPECT_LE(error_of(packed.gradient, sum.gradient), pick(1e-12, 1e-5, 5e-5, 3e-2)) << "dropout " << dropout;
    EXPECT_EQ(packed.infeasible, sum.infeasible);
    EXPECT_GE(packed.infeasible, 1) << "three labels do not fit the one row of the third utterance";
  }
}

TEST_P(SpeechModels, OrderInTheBatchDoesNotMatter) {
  Speech model(ctx(), GetParam(), 11, 0.2);
  std::vector<Utterance> all = model.utterances({23, 9, 14}, {6, 1, 4});
  const Losses before = losses(model, all, true);
  std::reverse(all.begin(), all.end());
  const Losses after = losses(model, all, true);
  EXPECT_LE(error_of({after.total}, {before.total}), pick(1e-13, 1e-6, 1e-5, 1e-2));
  EXPECT_LE(error_of(after.gradient, before.gradient), pick(1e-12, 1e-5, 5e-5, 3e-2));
}

TEST_P(SpeechModels, StepsEqualTraining) {
  Speech model(ctx(), GetParam(), 11);
  const std::vector<Utterance> all = model.utterances({23, 9, 1, 30}, {6, 1, 3, 0});
  Tape tape(ctx(), false);
  Tables tables(ctx());
  Pass pass{tape, tables};
  const SpeechBatch batch = model.batch(all);
  const SpeechModel::Encoded encoded = model->encode(pass, batch.features, batch.frames);
  const std::vector<double> logits = ctx().download_real(model->logits(pass, batch, encoded).value());
  const PromptDecoder& decoder = model->decoder();
  DecoderState state = decoder.start(pass, encoded.prompt, encoded.segments, 4, 7);
  std::vector<size_t> live = {0, 1, 2, 3};
  for (int64_t t = 0; t < 7; ++t) {
    std::vector<int32_t> parents, inputs;
    std::vector<size_t> next;
    std::vector<double> want;
    for (size_t r = 0; r < live.size(); ++r) {
      if (t >= batch.tokens.length(static_cast<int64_t>(live[r]))) continue;
      parents.push_back(static_cast<int32_t>(r));
      next.push_back(live[r]);
      inputs.push_back(all[live[r]].inputs()[static_cast<size_t>(t)]);
      const int64_t row = batch.tokens.begin(static_cast<int64_t>(live[r])) + t;
      append(want, rows_of(logits, row, row + 1, 11));
    }
    if (parents.size() < live.size()) decoder.reorder(pass, state, parents);
    live = next;
    const Var got = decoder.step(pass, TokenIndex::make(ctx(), inputs, 11), state);
    ASSERT_LE(error_of(ctx().download_real(got.value()), want), pick(1e-12, 1e-5, 5e-5, 4e-2)) << "step " << t;
  }
}

const std::vector<int64_t> kStrides = {2, 3};
INSTANTIATE_TEST_SUITE_P(Cpu, SpeechModels, ::testing::ValuesIn(cases(Device::cpu, kStrides)), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, SpeechModels, ::testing::ValuesIn(cases(Device::cuda, kStrides)), case_name);

}  // namespace
}  // namespace tactus::laws
