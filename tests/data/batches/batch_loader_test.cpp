#include "data/batches/batch_loader.h"

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/data/batches/batch_test_util.h"

namespace tactus {
namespace {

class BatchLoaderTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    write_toy_corpus(path("c.h5"), varied_lengths(60));
    split_ = Corpus::open(path("c.h5")).split("train");
  }
  BatchPlan training() const { return BatchPlan::for_training(split_, {.max_frames = 300}, 11); }
  std::shared_ptr<const CorpusSplit> split_;
};

TEST_F(BatchLoaderTest, ResumesFromAnyPosition) {
  BatchContents contents{.ctc = CtcTarget::source};
  BatchPlan plan = training();
  const int64_t total = 2 * plan.batches() + 3;
  std::vector<Batch> all;
  std::vector<LoaderPosition> positions;
  BatchLoader loader(plan, contents);
  for (int64_t k = 0; k < total; ++k) {
    positions.push_back(loader.position());
    all.push_back(*loader.next());
  }
  EXPECT_EQ(positions.front(), (LoaderPosition{0, 0}));
  EXPECT_EQ(all.back().epoch, 2);
  EXPECT_NE(all[0].utterances, all[plan.batches()].utterances);
  for (int64_t k = 0; k < total; ++k) {
    BatchLoader resumed(training(), contents, positions[k], {1 + k % 4, 1 + k % 3});
    for (int64_t n = k; n < std::min(total, k + 3); ++n) ASSERT_EQ(batch_hash(*resumed.next()), batch_hash(all[n]));
  }
  loader.seek(positions[4]);
  EXPECT_EQ(loader.position(), positions[4]);
  EXPECT_EQ(batch_hash(*loader.next()), batch_hash(all[4]));
  // A finished epoch and the start of the next are the same place.
  loader.seek({0, plan.batches()});
  EXPECT_EQ(batch_hash(*loader.next()), batch_hash(all[plan.batches()]));
}

TEST_F(BatchLoaderTest, EvaluationEnds) {
  BatchPlan plan = BatchPlan::for_evaluation(split_, {.max_frames = 300});
  BatchLoader loader(plan, {});
  int64_t utterances = 0, batches = 0;
  while (std::optional<Batch> batch = loader.next()) utterances += batch->size(), ++batches;
  EXPECT_EQ(utterances, 60);
  EXPECT_EQ(batches, plan.batches());
  EXPECT_FALSE(loader.next().has_value());
  loader.seek({});
  EXPECT_TRUE(loader.next().has_value());
}

TEST_F(BatchLoaderTest, StopsCleanlyWhileTheQueueIsFull) {
  for (int i = 0; i < 20; ++i) {
    BatchLoader loader(training(), {}, {}, {1 + i % 3, 2});
    if (i % 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (i % 3) loader.next();
  }
}

TEST_F(BatchLoaderTest, PositionsBeyondThePlanAreRefused) {
  int64_t batches = training().batches();
  for (LoaderPosition bad : {LoaderPosition{0, batches + 1}, LoaderPosition{-1, 0}, LoaderPosition{0, -1}})
    EXPECT_TRUE(contains(message_of<DataError>([&] { BatchLoader(training(), {}, bad); }), "beyond the"));
}

TEST_F(BatchLoaderTest, OneThreadAndEightGiveTheSameBytes) {
  const auto epoch = [&](int64_t threads, DType dtype) {
    const auto pool = HostPool::make(1 << 16);
    BatchContents contents{.augment = {.time_warp = 3}, .dtype = dtype, .ctc = CtcTarget::source, .pool = pool};
    BatchLoader loader(training(), contents, {1, 0}, {threads, 5});
    std::vector<uint64_t> hashes;
    for (int64_t b = 0; b < 2 * loader.plan().batches(); ++b) hashes.push_back(batch_hash(*loader.next()));
    EXPECT_LE(pool->use().blocks, 5 + threads);
    return hashes;
  };
  EXPECT_EQ(epoch(1, DType::f32), epoch(8, DType::f32));
  EXPECT_EQ(epoch(1, DType::bf16), epoch(8, DType::bf16));
  EXPECT_NE(epoch(1, DType::bf16), epoch(1, DType::f32));
}

TEST_F(BatchLoaderTest, BatchesBeforeAFaultyOneAreDelivered) {
  // A token beyond the vocabulary in one utterance, as on a disk that flips bits.
  const BatchPlan plan = BatchPlan::for_evaluation(split_, {.max_frames = 300});
  const int32_t victim = items(plan, 5).front();
  const std::string bytes = read_text_file(path("c.h5"));
  std::vector<int32_t> tokens = split_->tgt_tokens()[victim];
  const std::string pattern(tokens.begin(), tokens.end());  // ids of small vocabularies take a byte each
  std::string damaged = bytes;
  for (size_t at = bytes.find(pattern); at != std::string::npos; at = bytes.find(pattern, at + 1)) damaged[at] = '\xff';
  ASSERT_NE(damaged, bytes);
  write("d.h5", damaged);
  const auto split = Corpus::open(path("d.h5")).split("train");
  for (int64_t threads : {1, 4}) {
    BatchLoader loader(BatchPlan::for_evaluation(split, {.max_frames = 300}), {}, {}, {threads, 3});
    int64_t good = 0;
    const auto all = [&] {
      while (loader.next()) ++good;
    };
    EXPECT_TRUE(contains(message_of<DataError>(all), "outside the vocabulary"));
    EXPECT_EQ(good, 5);
    EXPECT_THROW(loader.next(), DataError);
    loader.seek({0, 6});
    EXPECT_TRUE(loader.next().has_value());
  }
}

TEST_F(BatchLoaderTest, NoMoreBatchesLiveThanAsked) {
  const auto pool = HostPool::make(1 << 16);
  BatchLoader loader(training(), {.pool = pool}, {}, {3, 2});
  std::optional<Batch> held;
  for (int i = 0; i < 100; ++i) {
    held.reset();
    held = loader.next();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(pool->use().blocks, 5);
  EXPECT_LE(pool->use().allocations, 5);
}

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

TEST_F(BatchLoaderTest, MemoryStaysFlatOverALargeCorpus) {
  CorpusOptions corpus;
  const TokenizerOptions words{.model = "unigram", .vocab_size = 60};
  CorpusWriter writer(path("large.h5"), corpus, Tokenizer::train(toy_sentences(), words, "toy"), {});
  writer.begin_split("train", SplitColumns());
  const std::vector<float> frames_of_all = toy_frames(0, 400, 80);
  for (int64_t i = 0; i < 1000; ++i) writer.add(toy_item(i), frames_of_all);  // 64 MB
  writer.end_split(report_json(1000, 1000, 0, {}));
  writer.commit();
  const auto split = Corpus::open(path("large.h5")).split("train");
  const BatchOptions options{.max_frames = 2000};
  const BatchPlan plan = BatchPlan::for_training(split, options, 1);
  const auto pool = HostPool::make(feature_bytes(plan, options, DType::f32));
  BatchLoader loader(plan, {.pool = pool}, {}, {2, 2});
  for (int i = 0; i < 10; ++i) loader.next();
  const int64_t before = resident_bytes();
  int64_t frames = 0, peak = 0;
  while (loader.position().epoch == 0) {
    frames += loader.next()->frames();
    peak = std::max(peak, resident_bytes());
  }
  EXPECT_EQ(frames, 1000 * 400 - 10 * 2000);
  EXPECT_LT(peak - before, int64_t{6} << 20);
}

}  // namespace
}  // namespace tactus
