// Divergence and full disks: one clear line, and what was saved before stays good.
#include <sys/mount.h>

#include "tests/train/run_test_util.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

void expect_all_verify(const std::string& run, int64_t at_least) {
  const CheckpointFolder folder(run);
  EXPECT_GE(static_cast<int64_t>(folder.updates().size()), at_least);
  for (int64_t u : folder.updates()) EXPECT_EQ(verify_checkpoint(folder.path(u), false), "");
  EXPECT_TRUE(folder.newest().has_value());
}

void expect_finite_weights(const std::string& run) {
  const CheckpointFolder folder(run);
  for (int64_t u : folder.updates()) {
    for (const auto& [name, values] : weights_of(folder.model_path(u))) {
      for (double v : values) ASSERT_TRUE(std::isfinite(v)) << name << " of update " << u;
    }
  }
}

TEST_F(RunTest, DivergenceStopsWithoutSpoilingCheckpoints) {
  const std::string yaml = config("max_updates: 40, save_every: 1, log_every: 1, keep_last: 100, max_skipped: 3");
  ASSERT_EQ(tactus({"train", yaml, "--run", path("run"), "--set", "train.max_updates=5"}).code, 0);
  const Outcome o = tactus({"train", yaml, "--run", path("run"), "--set", "optimiser.learning_rate=1e36"});
  EXPECT_EQ(o.code, 1) << o.err;
  ASSERT_EQ(o.errors().size(), 1u) << o.err;
  const std::string line = o.errors().front();
  for (const char* part : {"diverged", "update", "learning rate is", "utt", "e+3", "checkpoints up to update"})
    EXPECT_TRUE(contains(line, part)) << part << " is missing: " << line;
  expect_all_verify(path("run"), 5);
  expect_finite_weights(path("run"));
  EXPECT_TRUE(contains(file_text(path("run/log.jsonl")), "\"skipped\", \"update\""))
      << file_text(path("run/log.jsonl"));
  // The run can go on with another rate from where it was still sane.
  for (int64_t u : CheckpointFolder(path("run")).updates()) {
    if (u > 5) fs::remove_all(CheckpointFolder(path("run")).path(u));
  }
  const Outcome again = tactus({"train", yaml, "--run", path("run"), "--set", "train.max_updates=9"});
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST_F(RunTest, WeightsBeyondTheirRangeAreNotSaved) {
  const RunOptions o = run_options(corpus_, "max_updates: 40, save_every: 1, keep_last: 100",
                                   {"optimiser.learning_rate=1e60", "optimiser.warmup_updates=1"});
  const std::string said = message_of<Error>([&] { train(o, path("run")); });
  EXPECT_TRUE(contains(said, "diverged: weights are not finite after update 2")) << said;
  EXPECT_TRUE(contains(said, "up to update 1 are kept")) << said;
  expect_all_verify(path("run"), 1);
  expect_finite_weights(path("run"));
}

TEST_F(RunTest, SkippedUpdatesAreCountedOnceInAResumedLog) {
  // A rate so large that every update after the next is skipped until the run gives up.
  const RunOptions o = run_options(corpus_, "max_updates: 8, log_every: 1, save_every: 2, max_skipped: 4");
  train(run_options(corpus_, "max_updates: 2, log_every: 1, save_every: 2, max_skipped: 4"), path("run"));
  const RunOptions wild = run_options(corpus_, "max_updates: 8, log_every: 1, save_every: 99, max_skipped: 4",
                                      {"optimiser.learning_rate=1e36"});
  std::string logs[2];
  for (std::string& log : logs) {
    message_of<Error>([&] { train(wild, path("run")); });
    log = repeatable_log(path("run"));
  }
  EXPECT_TRUE(contains(logs[0], "\"skipped\", \"update\"")) << logs[0];
  EXPECT_EQ(logs[0], logs[1]) << "the second run repeats what followed the checkpoint, it does not add to it";
  train(o, path("run"));
  EXPECT_FALSE(contains(repeatable_log(path("run")), "\"reason\""));
}

/// A file system of the given size for as long as it lives; `ok` is false where mounting is not allowed.
struct TinyDisk {
  TinyDisk(const std::string& folder, const std::string& size) : path(folder) {
    fs::create_directories(path);
    ok = mount("tmpfs", path.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~TinyDisk() {
    if (ok) umount2(path.c_str(), MNT_DETACH);
  }
  std::string path;
  bool ok;
};

TEST_F(RunTest, FullDiskDuringASave) {
  const std::string yaml = config("max_updates: 200, save_every: 1, log_every: 1, keep_last: 100");
  TinyDisk disk(path("disk"), "1500k");
  if (!disk.ok) GTEST_SKIP() << "mounting a small file system is not allowed here";
  const Outcome o = tactus({"train", yaml, "--run", disk.path + "/run"});
  EXPECT_EQ(o.code, 1) << o.err;
  ASSERT_EQ(o.errors().size(), 1u) << o.err;
  EXPECT_TRUE(contains(o.errors().front(), "No space left")) << o.errors().front();
  EXPECT_TRUE(leftovers(disk.path).empty()) << leftovers(disk.path).front();
  expect_all_verify(disk.path + "/run", 2);
}

TEST_F(RunTest, FileTooLargeForTheSystem) {
  const std::string yaml = config("max_updates: 5, save_every: 1");
  ASSERT_EQ(tactus({"train", yaml, "--run", path("run"), "--set", "train.max_updates=2"}).code, 0);
  const Outcome o = Process(folder_.string(), {"train", yaml, "--run", path("run")}, 40000).wait();
  EXPECT_EQ(o.code, 1) << o.err;
  ASSERT_EQ(o.errors().size(), 1u) << o.err;
  EXPECT_TRUE(contains(o.errors().front(), "checkpoint of update 3 could not be written") &&
              contains(o.errors().front(), "File too large"))
      << o.errors().front();
  EXPECT_TRUE(leftovers(path("run")).empty());
  expect_all_verify(path("run"), 2);
  EXPECT_EQ(CheckpointFolder(path("run")).newest(), 2);
}

TEST_F(RunTest, FullDiskOfAnAverageAndADecode) {
  train(run_options(corpus_, "max_updates: 3, save_every: 1"), path("run"));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"average", path("run"), "--last", "2", "--out", path("mean.h5")},
        {"decode", path("run"), "--data", "test", "--threads", "1", "--out", path("out.tsv")}}) {
    // Enough for the log files of the test, too little for the result.
    const Outcome o = Process(folder_.string(), arguments, 300).wait();
    EXPECT_EQ(o.code, 1) << arguments[0] << o.err;
    ASSERT_EQ(o.errors().size(), 1u) << o.err;
    EXPECT_TRUE(contains(o.errors().front(), arguments.back())) << o.err;
    EXPECT_FALSE(fs::exists(arguments.back()));
  }
  for (const std::string& name : files()) EXPECT_FALSE(contains(name, ".tmp")) << name;
}

}  // namespace
}  // namespace tactus
