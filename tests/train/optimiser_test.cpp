// Accumulation, schedule, clipping, and the end of training.
#include "core/files/json.h"
#include "tests/train/run_test_util.h"
#include "train/checkpoint/state_file.h"

namespace tactus {
namespace {

/// The utterances of several batches in one.
Batch merged(const std::vector<Batch>& parts) {
  Batch all;
  all.bins = parts.front().bins, all.dtype = parts.front().dtype;
  int64_t bytes = 0;
  for (const Batch& part : parts) bytes += part.features.bytes();
  all.features = HostBuffer(bytes);
  char* out = all.features.as<char>();
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (const Batch& part : parts) {
    append(all.utterances, part.utterances);
    append(all.frame_lengths, part.frame_lengths);
    out = std::copy_n(part.features.as<char>(), part.features.bytes(), out);
    append(all.target_lengths, part.target_lengths);
    append(all.previous_tokens, part.previous_tokens);
    append(all.target_tokens, part.target_tokens);
    append(all.ctc_lengths, part.ctc_lengths);
    append(all.ctc_tokens, part.ctc_tokens);
  }
  return all;
}

TEST_F(RunTest, AccumulationEqualsOneBatchOfAll) {
  RunOptions o = run_options(corpus_, "max_epochs: 2, accumulate: 4, log_every: 1",
                             {"dtype=f64", "model.encoder.dropout=0", "model.encoder.attention_dropout=0",
                              "model.encoder.activation_dropout=0", "model.decoder.dropout=0",
                              "model.decoder.activation_dropout=0", "optimiser.clip_norm=0.5"});
  Corpus corpus = Corpus::open(corpus_);
  const auto split = corpus.split("train");
  const BatchPlan plan = BatchPlan::for_training(split, o.data.batches, static_cast<uint64_t>(o.seed));
  ASSERT_NE(plan.batches() % 4, 0) << "the last group of an epoch must be a short one";
  const Vocabularies v = vocabularies_of(o, corpus);
  SpeechTask task(make_context("cpu", 1), o, v.target, v.ctc, true);
  task.store().initialise(static_cast<uint64_t>(o.seed));
  Optimiser optimiser(o.optimiser, task.store(), 100);
  BatchContents contents{.augment = o.data.specaugment, .dtype = DType::f64, .ctc = CtcTarget::source};
  int64_t update = 0;
  std::vector<double> norms;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const std::vector<int32_t> order = plan.order(epoch);
    for (size_t first = 0; first < order.size(); first += 4) {
      std::vector<Batch> group;
      for (size_t i = first; i < std::min(first + 4, order.size()); ++i)
        group.push_back(make_batch(plan, contents, epoch, order[i]));
      task.store().zero_grad();
      Tape tape(task.ctx());
      SpeechLoss loss = task.loss(tape, task.to_device(merged(group)), true, 1);
      tape.backward(loss.total);
      norms.push_back(optimiser.step(++update, static_cast<double>(loss.tokens)).norm);
    }
  }
  const TrainResult r = train(o, path("run"));
  EXPECT_EQ(r.updates, update);
  const std::map<std::string, std::vector<double>> trained =
      weights_of(CheckpointFolder(path("run")).model_path(update));
  std::map<std::string, std::vector<double>> expected;
  double moved = 0;
  for (Parameter* p : task.store().all()) expected[p->name] = task.store().read(*p);
  EXPECT_LE(distance(trained, expected), 1e-9);
  task.store().initialise(static_cast<uint64_t>(o.seed));
  for (Parameter* p : task.store().all()) {
    const std::vector<double> begin = task.store().read(*p);
    for (size_t i = 0; i < begin.size(); ++i) moved = std::max(moved, std::abs(begin[i] - expected[p->name][i]));
  }
  EXPECT_GE(moved, 1e-3) << "the updates must be large enough for the comparison to mean something";
  std::istringstream log(file_text(path("run/log.jsonl")));
  std::vector<double> logged;
  for (std::string line; std::getline(log, line);) {
    const Json json = parse_json(line);
    if (json.at("type").as_string() == "train") logged.push_back(json.at("gradient_norm").as_double());
  }
  ASSERT_EQ(logged.size(), norms.size());
  for (size_t i = 0; i < norms.size(); ++i) EXPECT_NEAR(logged[i], norms[i], 1e-9 * norms[i]) << "update " << i + 1;
}

TEST_F(RunTest, FirstUpdateHasRateZeroAndLaterOnesFollowTheSchedule) {
  train(run_options(corpus_, "max_updates: 20, log_every: 1, save_every: 1, keep_last: 99"), path("run"));
  const CheckpointFolder folder(path("run"));
  std::istringstream log(file_text(path("run/log.jsonl")));
  int64_t update = 0;
  for (std::string line; std::getline(log, line);) {
    const Json json = parse_json(line);
    if (json.at("type").as_string() != "train") continue;
    const double n = static_cast<double>(update++);
    // learning_rate 0.01, warm-up of 8.
    EXPECT_NEAR(json.at("rate").as_double(), n < 8 ? 0.01 * n / 8 : 0.01 * std::sqrt(8 / n), 1e-12) << line;
  }
  EXPECT_EQ(update, 20);
  RunOptions o = run_options(corpus_, "");
  Corpus corpus = Corpus::open(corpus_);
  const Vocabularies v = vocabularies_of(o, corpus);
  SpeechTask fresh(make_context("cpu", 1), o, v.target, v.ctc, true);
  fresh.store().initialise(static_cast<uint64_t>(o.seed));
  std::map<std::string, std::vector<double>> begin;
  for (Parameter* p : fresh.store().all()) begin[p->name] = fresh.store().read(*p);
  EXPECT_EQ(distance(weights_of(folder.model_path(1)), begin), 0);
  EXPECT_GT(distance(weights_of(folder.model_path(2)), begin), 0);
}

/// A store of two parameters with given gradients, stepped once at rate 0.1.
struct OneStep {
  explicit OneStep(const std::vector<double>& gradient, double clip, double divisor) : ctx(Context::cpu(1)) {
    Parameter& a = store.add("a", {2}, Init::ones());
    Parameter& b = store.add("b", {1}, Init::zeros());
    store.allocate(ctx, DType::f64, true);
    store.initialise(1);
    store.zero_grad();
    ctx.copy(a.grad, ctx.upload_real({gradient[0], gradient[1]}, {2}, DType::f64));
    ctx.copy(b.grad, ctx.upload_real({gradient[2]}, {1}, DType::f64));
    OptimiserOptions o;
    o.learning_rate = 0.1;
    o.warmup_updates = 1;
    o.clip_norm = clip;
    Optimiser optimiser(o, store, 100);
    result = optimiser.step(2, divisor);
    moment = ctx.download_real(optimiser.first_moment().slice(a.offset, a.offset + 2));
    values = store.read(a);
  }
  Context ctx;
  ParameterStore store;
  Optimiser::Result result;
  std::vector<double> moment, values;
};

TEST(Optimiser, ClipsByTheGlobalNormAfterDivision) {
  const OneStep free({30, 40, 120}, 0, 10);
  EXPECT_NEAR(free.result.norm, 13, 1e-12);
  EXPECT_NEAR(free.moment[0], 0.1 * 3, 1e-12);
  const OneStep loose({30, 40, 120}, 20, 10);
  EXPECT_EQ(loose.moment, free.moment);
  const OneStep clipped({30, 40, 120}, 1, 10);
  EXPECT_NEAR(clipped.result.norm, 13, 1e-12) << "the norm before clipping is reported";
  EXPECT_NEAR(clipped.moment[0], 0.1 * 3 / 13, 1e-7);
  EXPECT_NEAR(clipped.moment[1], 0.1 * 4 / 13, 1e-7);
}

TEST(Optimiser, NonFiniteGradientChangesNothing) {
  for (double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    const OneStep step({1, bad, 1}, 1, 1);
    EXPECT_FALSE(step.result.finite);
    EXPECT_EQ(step.values, (std::vector<double>{1, 1}));
    EXPECT_EQ(step.moment, (std::vector<double>{0, 0}));
  }
}

OptimiserOptions schedule(const std::string& name) {
  OptimiserOptions o;
  o.learning_rate = 0.5;
  o.warmup_updates = 100;
  o.schedule = name;
  return o;
}

TEST(Optimiser, SchedulesMeetAtTheEndOfWarmUp) {
  for (const std::string name : {"inverse_sqrt", "linear", "cosine"}) {
    const OptimiserOptions o = schedule(name);
    EXPECT_EQ(scheduled_rate(o, 500, 0), 0) << name;
    EXPECT_DOUBLE_EQ(scheduled_rate(o, 500, 50), 0.25) << name;
    EXPECT_DOUBLE_EQ(scheduled_rate(o, 500, 100), 0.5) << name;
  }
  EXPECT_DOUBLE_EQ(scheduled_rate(schedule("inverse_sqrt"), 500, 400), 0.25);
  EXPECT_DOUBLE_EQ(scheduled_rate(schedule("linear"), 500, 200), 0.375);
  EXPECT_DOUBLE_EQ(scheduled_rate(schedule("cosine"), 500, 300), 0.25);
  for (const std::string name : {"linear", "cosine"}) {
    EXPECT_NEAR(scheduled_rate(schedule(name), 500, 500), 0, 1e-15) << name;
    EXPECT_GT(scheduled_rate(schedule(name), 500, 499), 0) << name;
  }
}

}  // namespace
}  // namespace tactus
