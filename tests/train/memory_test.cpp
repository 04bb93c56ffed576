// Memory of long runs: no growth after warm-up, nothing left by decoding.
#include <random>

#include "tests/train/run_test_util.h"
#include "train/predict/decoder_run.h"

namespace tactus {
namespace {

TEST_F(RunTest, PoolStopsGrowingAfterWarmUp) {
  RunOptions o = run_options(corpus_, "", {"data.batches.max_frames=240", "data.batches.max_utterances=5"});
  Corpus corpus = Corpus::open(corpus_);
  const auto split = corpus.split("train");
  const BatchPlan plan = BatchPlan::for_training(split, o.data.batches, 1);
  const Vocabularies v = vocabularies_of(o, corpus);
  SpeechTask task(make_context("cpu", 1), o, v.target, v.ctc, true);
  task.store().initialise(1);
  Optimiser optimiser(o.optimiser, task.store(), 240);
  const Allocator& pool = task.ctx().allocator();
  const BatchContents contents{.augment = o.data.specaugment, .ctc = CtcTarget::source};
  const int64_t live = pool.use().total_live;
  std::mt19937 random(7);
  MemoryUse warm;
  for (int64_t i = 0; i < 240; ++i) {
    // The first pass sees every batch once, largest first.
    const int64_t number =
        i < plan.batches() ? i : static_cast<int64_t>(random() % static_cast<uint32_t>(plan.batches()));
    {
      Tape tape(task.ctx());
      const SpeechLoss loss =
          task.loss(tape, task.to_device(make_batch(plan, contents, i, number)), true, static_cast<uint64_t>(i));
      tape.backward(loss.total);
      ASSERT_TRUE(optimiser.step(i + 1, static_cast<double>(loss.tokens)).finite);
    }
    if (i == 39) warm = pool.use();
    // The position tables are the one thing that stays.
    if (i > 39) {
      ASSERT_EQ(pool.use().total_live, warm.total_live) << "batch " << i;
    }
  }
  ASSERT_LT(plan.batches(), 40);
  EXPECT_EQ(pool.use().reserved, warm.reserved);
  EXPECT_EQ(pool.use().device_allocations, warm.device_allocations);
  EXPECT_LT(warm.total_live - live, 1 << 20);
}

TEST_F(RunTest, DecodingGivesItsMemoryBack) {
  train(run_options(corpus_, "max_updates: 2"), path("run"));
  LoadedModel model = load_model(path("run"), "cpu", 1, {"decode.beam=4", "decode.max_length=40"});
  Corpus corpus = Corpus::open(corpus_);
  const Allocator& pool = model.task->ctx().allocator();
  decode_split(model, corpus, "train");
  const MemoryUse after_long = pool.use();
  model.options.decode.max_length = 3;
  model.options.decode.beam = 1;
  const DecodeReport shorter = decode_split(model, corpus, "dev");
  EXPECT_EQ(pool.use().total_live, after_long.total_live);
  EXPECT_EQ(pool.use().reserved, after_long.reserved);
  EXPECT_EQ(pool.use().live[static_cast<size_t>(MemoryTag::cache)], 0);
  EXPECT_GT(shorter.memory.total_peak, 0);
}

TEST_F(RunTest, EveryInputGetsALine) {
  train(run_options(corpus_, "max_updates: 2"), path("run"));
  LoadedModel model = load_model(path("run"), "cpu", 1);
  Corpus corpus = Corpus::open(corpus_);
  const DecodeReport r = decode_split(model, corpus, "test");
  const auto split = corpus.split("test");
  ASSERT_EQ(static_cast<int64_t>(r.lines.size()), split->size());
  for (int64_t i = 0; i < split->size(); ++i) EXPECT_EQ(r.lines[static_cast<size_t>(i)].id, split->id(i));
  EXPECT_GE(r.empty, 1);
  EXPECT_EQ(r.lines[0].hypothesis, "") << "no frames, no words";
  // Greedy and alone: the batch of an utterance does not change its output.
  LoadedModel alone = load_model(path("run"), "cpu", 1, {"data.batches.max_utterances=1"});
  const DecodeReport one = decode_split(alone, corpus, "test");
  for (size_t i = 0; i < r.lines.size(); ++i) {
    EXPECT_EQ(one.lines[i].hypothesis, r.lines[i].hypothesis) << r.lines[i].id;
    EXPECT_NEAR(one.lines[i].score, r.lines[i].score, 1e-5);
  }
}

}  // namespace
}  // namespace tactus
