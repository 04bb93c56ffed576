// batch: auto, and the search behind it.
#include "train/loop/batch_fit.h"

#include "tests/train/run_test_util.h"
#include "train/loop/plan_check.h"

namespace tactus {
namespace {

struct Machine {
  int64_t capacity = 0, fixed = 1000, per_frame = 10;
  int64_t square = 0;  ///< bytes of a million frames squared
  int64_t trials = 0;
  std::optional<int64_t> operator()(int64_t frames) {
    ++trials;
    const int64_t bytes = fixed + per_frame * frames + square * frames / 1000000 * frames;
    return bytes <= capacity ? std::optional(bytes) : std::nullopt;
  }
  std::optional<int64_t> fit(int64_t smallest, int64_t largest, int64_t budget) {
    return fit_limit([this](int64_t n) { return (*this)(n); }, smallest, largest, budget);
  }
};

TEST(FitLimit, FindsWhatFitsWithAMargin) {
  for (const int64_t square : {0, 5}) {
    for (const bool known : {true, false}) {
      Machine m{.capacity = 12345678, .square = square};
      int64_t exact = 1;
      while (m(exact + 100)) exact += 100;
      m.trials = 0;
      const std::optional<int64_t> found = m.fit(3000, int64_t{1} << 40, known ? m.capacity : 0);
      ASSERT_TRUE(found.has_value());
      EXPECT_LE(*found, exact * 91 / 100);
      EXPECT_GE(*found, exact * 82 / 100);
      EXPECT_LE(m.trials, known ? 10 : 20);
      if (known && square == 0) {
        EXPECT_LE(m.trials, 6) << "memory that grows linearly is predicted";
      }
    }
  }
}

TEST(FitLimit, StopsAtTheEnds) {
  Machine m{.capacity = 5000};
  EXPECT_EQ(m.fit(100, 300, 5000), 300) << "all the data fit: no margin";
  EXPECT_EQ(m.fit(500, 300, 0), std::nullopt) << "not even the smallest";
  EXPECT_EQ(m.fit(390, 3000, 0), 390) << "never below the smallest";
  Machine flat{.capacity = 5000, .per_frame = 0};
  EXPECT_EQ(flat.fit(10, 100000, 5000), 100000);
  EXPECT_GT(available_host_bytes(), 1 << 20);
}

TEST_F(RunTest, AutomaticBatchesAreKeptWithTheRun) {
  RunOptions o = run_options(corpus_, "max_updates: 1", {"data.batches.batch=auto", "data.batches.max_frames=1"});
  const RunOptions fitted = fit_batches(o);
  EXPECT_EQ(fitted.data.batches.batch, "fixed");
  // All of the toy corpus fits into memory.
  Corpus corpus = Corpus::open(corpus_);
  const auto split = corpus.split("train");
  EXPECT_EQ(fitted.data.batches.max_frames, split->total_frames());
  o.data.batches.max_utterances = 3;
  EXPECT_LE(fit_batches(o).data.batches.max_frames, 3 * 60);
  train(o, path("run"));
  RunOptions resolved;
  Config::load(path("run/config.yaml")).read(resolved);
  EXPECT_EQ(resolved.data.batches.batch, "fixed");
  const int64_t frames = resolved.data.batches.max_frames;
  EXPECT_GE(frames, 60);
  // Resuming measures nothing anew.
  RunOptions edited = resolved;
  edited.data.batches.max_frames = frames - 1;
  write("run/config.yaml", dump_yaml(edited));
  o.train.max_updates = 2;
  train(o, path("run"));
  Config::load(path("run/config.yaml")).read(resolved);
  EXPECT_EQ(resolved.data.batches.max_frames, frames - 1);
  EXPECT_TRUE(contains(check_plan(o), "largest batch: 3 utterances"));
}

}  // namespace
}  // namespace tactus
