#include "data/batch_loader.h"

#include <chrono>
#include <thread>

#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

class BatchLoaderTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < 60; ++i) lengths.push_back(5 + i * 37 % 90);
    write_toy_corpus(path("c.h5"), lengths);
    split_ = Corpus::open(path("c.h5")).split("train");
  }
  BatchPlan training() const { return BatchPlan::for_training(*split_, {.max_frames = 300}, 11); }
  std::shared_ptr<const CorpusSplit> split_;
};

void expect_same(const Batch& a, const Batch& b) {
  ASSERT_EQ(a.epoch, b.epoch);
  ASSERT_EQ(a.index, b.index);
  ASSERT_EQ(a.utterances, b.utterances);
  ASSERT_EQ(a.features, b.features);
  ASSERT_EQ(a.previous_tokens, b.previous_tokens);
  ASSERT_EQ(a.target_tokens, b.target_tokens);
  ASSERT_EQ(a.ctc_tokens, b.ctc_tokens);
}

TEST_F(BatchLoaderTest, ResumesFromAnyPosition) {
  BatchContents contents{.ctc = CtcTarget::source};
  BatchPlan plan = training();
  const int64_t total = 2 * plan.batches() + 3;
  std::vector<Batch> all;
  std::vector<LoaderPosition> positions;
  BatchLoader loader(split_, plan, contents);
  for (int64_t k = 0; k < total; ++k) {
    positions.push_back(loader.position());
    all.push_back(*loader.next());
  }
  EXPECT_EQ(positions.front(), (LoaderPosition{0, 0}));
  EXPECT_EQ(all.back().epoch, 2);
  EXPECT_NE(all[0].utterances, all[plan.batches()].utterances);
  for (int64_t k = 0; k < total; ++k) {
    BatchLoader resumed(split_, training(), contents, positions[k], 1 + k % 3);
    for (int64_t n = k; n < std::min(total, k + 3); ++n) expect_same(*resumed.next(), all[n]);
  }
  loader.seek(positions[4]);
  EXPECT_EQ(loader.position(), positions[4]);
  expect_same(*loader.next(), all[4]);
  // A finished epoch and the start of the next are the same place.
  loader.seek({0, plan.batches()});
  expect_same(*loader.next(), all[plan.batches()]);
}

TEST_F(BatchLoaderTest, EvaluationEnds) {
  BatchPlan plan = BatchPlan::for_evaluation(*split_, {.max_frames = 300});
  BatchLoader loader(split_, plan, {});
  int64_t utterances = 0, batches = 0;
  while (std::optional<Batch> batch = loader.next()) utterances += batch->size(), ++batches;
  EXPECT_EQ(utterances, 60);
  EXPECT_EQ(batches, plan.batches());
  EXPECT_FALSE(loader.next().has_value());
  loader.seek({});
  EXPECT_TRUE(loader.next().has_value());
}

TEST_F(BatchLoaderTest, ErrorsInTheThreadComeOutOfNext) {
  write("cut.h5", read_text_file(path("c.h5")));
  auto split = Corpus::open(path("cut.h5")).split("train");
  // The frames vanish after the tables were read, as on a failing disk.
  std::filesystem::resize_file(path("cut.h5"), 3000);
  BatchLoader loader(split, BatchPlan::for_training(*split, {.max_frames = 300}, 1), {});
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(contains(message_of<DataError>([&] {
                           while (loader.next()) continue;
                         }),
                         path("cut.h5")));
}

TEST_F(BatchLoaderTest, StopsCleanlyWhileTheQueueIsFull) {
  for (int i = 0; i < 20; ++i) {
    BatchLoader loader(split_, training(), {}, {}, 2);
    if (i % 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (i % 3) loader.next();
  }
}

TEST_F(BatchLoaderTest, PositionsBeyondThePlanAreRefused) {
  int64_t batches = training().batches();
  for (LoaderPosition bad : {LoaderPosition{0, batches + 1}, LoaderPosition{-1, 0}, LoaderPosition{0, -1}})
    EXPECT_TRUE(contains(message_of<DataError>([&] { BatchLoader(split_, training(), {}, bad); }), "beyond the"));
}

}  // namespace
}  // namespace tactus
