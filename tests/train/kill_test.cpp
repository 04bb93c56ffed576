// kill -9 at any moment, also in the middle of a save: the resumed run goes on bit for bit.
#include <random>

#include "core/files/json.h"
#include "tests/train/run_test_util.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

class KillTest : public RunTest {
 protected:
  static constexpr int64_t kUpdates = 60;
  void SetUp() override {
    RunTest::SetUp();
    yaml_ = config("max_updates: 60, accumulate: 2, log_every: 3, save_every: 2, keep_last: 2, keep_best: 3");
    const auto begin = std::chrono::steady_clock::now();
    const Outcome o = tactus({"train", yaml_, "--run", path("whole")});
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "best metric")) << o.out;
  }
  std::vector<std::string> command() const { return {"train", yaml_, "--run", path("victim")}; }
  void expect_equal_after_finishing() {
    const Outcome o = tactus(command());
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(repeatable_log(path("victim")), repeatable_log(path("whole")));
    EXPECT_EQ(model_bytes(path("victim"), kUpdates), model_bytes(path("whole"), kUpdates));
    EXPECT_TRUE(leftovers(path("victim")).empty()) << leftovers(path("victim")).front();
  }
  std::string yaml_;
  double seconds_ = 0;
};

TEST_F(KillTest, AtRandomMoments) {
  std::mt19937 random(5);
  int killed = 0;
  for (int i = 0; i < 6; ++i) {
    Process child(folder_.string(), command());
    const double wait = seconds_ * (0.15 + 0.5 * static_cast<double>(random() % 1000) / 1000);
    std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    child.send(SIGKILL);
    killed += child.wait().killed;
  }
  EXPECT_GE(killed, 1);
  expect_equal_after_finishing();
}

TEST_F(KillTest, DuringASave) {
  int caught = 0;
  for (int i = 0; i < 8; ++i) {
    Process child(folder_.string(), command());
    int seen = 0;
    child.wait_for([&] {
      // The third save of this life, so that every life gets further.
      std::error_code gone;
      for (fs::directory_iterator e(path("victim/checkpoints"), gone), end; !gone && e != end; e.increment(gone)) {
        if (e->path().filename().string().rfind(".writing-", 0) == 0) return ++seen > 3 * i;
      }
      return false;
    });
    child.send(SIGKILL);
    if (!child.wait().killed) break;
    for (const auto& e : fs::directory_iterator(path("victim/checkpoints")))
      caught += e.path().filename().string().rfind(".writing-", 0) == 0;
  }
  EXPECT_GE(caught, 1) << "no kill fell into a save";
  expect_equal_after_finishing();
}

TEST_F(KillTest, SigtermAtRandomMomentsIsResumable) {
  std::mt19937 random(11);
  int stopped = 0;
  for (int i = 0; i < 6; ++i) {
    Process child(folder_.string(), command());
    child.wait_for([&] { return fs::exists(path("victim/checkpoints")); });
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    child.send(SIGTERM);
    const Outcome o = child.wait();
    EXPECT_TRUE((o.code == 143 && !o.killed) || o.code == 0 || i > 0) << o.code << o.err;
    stopped += o.code == 143 && contains(o.err, "holds a checkpoint of update");
  }
  EXPECT_GE(stopped, 1);
  expect_equal_after_finishing();
}

TEST_F(RunTest, KilledBetweenTheRenamesOfAReplacement) {
  train(run_options(corpus_, "max_updates: 3, save_every: 1, keep_last: 3"), path("run"));
  const CheckpointFolder folder(path("run"));
  const std::string root = path("run/checkpoints");
  fs::rename(folder.path(3), root + "/.retired-step-3");
  fs::create_directories(root + "/.writing-step-3");
  write("run/checkpoints/.writing-step-3/model.h5", "half a model");
  folder.recover();
  EXPECT_EQ(folder.newest(), 3);
  EXPECT_TRUE(leftovers(path("run")).empty());
  fs::create_directories(root + "/.retired-step-3");
  folder.recover();
  EXPECT_EQ(folder.newest(), 3);
  EXPECT_TRUE(leftovers(path("run")).empty());
}

TEST_F(RunTest, LineOfTheLogCutByAKill) {
  const RunOptions o = run_options(corpus_, "max_updates: 4, log_every: 1, save_every: 1, keep_last: 9");
  train(o, path("run"));
  const std::string log = repeatable_log(path("run")), text = file_text(path("run/log.jsonl"));
  fs::remove_all(CheckpointFolder(path("run")).path(4));
  write("run/log.jsonl", text.substr(0, text.size() - 20));
  train(o, path("run"));
  EXPECT_EQ(repeatable_log(path("run")), log);
}

}  // namespace
}  // namespace tactus
