// A resumed run is bit for bit the run that was never stopped.
#include "tests/train/run_test_util.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// 13 updates, four batches each, several epochs, validation at their ends, log lines that straddle checkpoints.
const std::string kLoop = "max_updates: 13, accumulate: 4, log_every: 2, keep_last: 100";

class ResumeTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    train(run_options(corpus_, kLoop), path("whole"));
    train(run_options(corpus_, kLoop + ", save_every: 1"), path("saving"));
  }
  /// The run folder as a kill just after the save of `update` and some more updates would leave it.
  std::string cut_after(int64_t update) const {
    const std::string run = path("cut-" + std::to_string(update));
    fs::create_directories(run + "/checkpoints");
    fs::copy(path("saving/log.jsonl"), run + "/log.jsonl");
    for (int64_t u = 1; u <= update; ++u) {
      const std::string from = CheckpointFolder(path("saving")).path(u);
      fs::copy(from, CheckpointFolder(run).path(u), fs::copy_options::recursive);
    }
    return run;
  }
  static void damage(const std::string& file, const std::string& how) {
    std::string bytes = file_text(file);
    if (how == "cut") bytes.resize(bytes.size() / 2);
    if (how == "flip") bytes[bytes.size() * 3 / 5] ^= 0x10;
    std::ofstream(file, std::ios::binary) << bytes;
  }
};

TEST_F(ResumeTest, SavingChangesNothing) {
  const std::string log = repeatable_log(path("whole"));
  EXPECT_GT(std::count(log.begin(), log.end(), '\n'), 8);
  EXPECT_EQ(repeatable_log(path("saving")), log);
  const auto whole = weights_of(CheckpointFolder(path("whole")).model_path(13));
  EXPECT_EQ(distance(whole, weights_of(CheckpointFolder(path("saving")).model_path(13))), 0);
}

TEST_F(ResumeTest, FromEveryUpdate) {
  const std::string log = repeatable_log(path("saving")), model = model_bytes(path("saving"), 13);
  for (int64_t update = 1; update <= 13; ++update) {
    const std::string run = cut_after(update);
    train(run_options(corpus_, kLoop + ", save_every: 1"), run);
    EXPECT_EQ(repeatable_log(run), log) << "from update " << update;
    EXPECT_EQ(model_bytes(run, 13), model) << "from update " << update;
    fs::remove_all(run);
  }
}

TEST_F(ResumeTest, WithThePoliciesOfAnUninterruptedRun) {
  // Pruned checkpoints, patience and the list of the best are part of what must go on unchanged.
  const std::string loop = "max_updates: 13, accumulate: 2, log_every: 3, save_every: 2, keep_last: 1, keep_best: 2";
  train(run_options(corpus_, loop), path("pruned"));
  std::set<std::string> names;
  for (const auto& e : fs::recursive_directory_iterator(path("pruned/checkpoints"))) {
    names.insert(fs::relative(e.path(), path("pruned")).string());
  }
  const std::string log = repeatable_log(path("pruned")), model = model_bytes(path("pruned"), 13);
  fs::remove_all(path("pruned"));
  // Stopping by limiting max_updates would validate; a signal does not, so a process is stopped at some update.
  const std::string yaml = config(loop);
  for (int stop = 0; stop < 12; ++stop) {
    Process child(folder_.string(), {"train", yaml, "--run", path("pruned")});
    child.wait_for([&] { return fs::exists(path("pruned/checkpoints/step-" + std::to_string(2 + stop))); });
    child.send(SIGTERM);
    const Outcome o = child.wait();
    ASSERT_TRUE(o.code == 143 || o.code == 0) << o.code << o.err;
    if (o.code == 0) break;
  }
  train(run_options(corpus_, loop), path("pruned"));
  EXPECT_EQ(repeatable_log(path("pruned")), log);
  EXPECT_EQ(model_bytes(path("pruned"), 13), model);
  EXPECT_EQ(CheckpointFolder(path("pruned")).newest(), 13);
}

TEST_F(ResumeTest, DamagedCheckpointIsPassedOver) {
  const std::string log = repeatable_log(path("saving")), model = model_bytes(path("saving"), 13);
  for (const std::string how : {"cut", "flip", "manifest", "state", "list"}) {
    for (const std::string file : {"model.h5", "state.h5"}) {
      const std::string run = cut_after(9), step = CheckpointFolder(run).path(9);
      if (how == "manifest") {
        fs::remove(step + "/manifest.json");
      } else if (how == "state") {
        fs::remove(step + "/" + file);
      } else if (how == "list") {
        damage(step + "/manifest.json", "cut");
      } else {
        damage(step + "/" + file, how);
      }
      testing::internal::CaptureStderr();
      EXPECT_EQ(CheckpointFolder(run).newest(), 8) << how << " " << file;
      const std::string said = testing::internal::GetCapturedStderr();
      EXPECT_TRUE(contains(said, "warning: checkpoint ignored: ") && contains(said, "step-9")) << said;
      // The damaged one must not push good ones out, and is replaced when training gets there.
      train(run_options(corpus_, kLoop + ", save_every: 1", {"train.keep_last=1"}), run);
      EXPECT_EQ(repeatable_log(run), log) << how << " " << file;
      EXPECT_EQ(CheckpointFolder(run).newest(), 13);
      EXPECT_EQ(distance(weights_of(CheckpointFolder(run).model_path(13)),
                         weights_of(CheckpointFolder(path("saving")).model_path(13))),
                0);
      fs::remove_all(run);
    }
  }
}

TEST_F(ResumeTest, DamagedNewerCheckpointDoesNotPushOutGoodOnes) {
  const std::string run = cut_after(9);
  damage(CheckpointFolder(run).path(9) + "/model.h5", "cut");
  damage(CheckpointFolder(run).path(8) + "/state.h5", "flip");
  RunOptions o = run_options(corpus_, "max_updates: 7, accumulate: 4, keep_last: 1");
  train(o, run);  // from 7: nothing to do but the last validation
  EXPECT_EQ(CheckpointFolder(run).newest(), 7);
}

TEST_F(ResumeTest, AllDamagedIsAnError) {
  const std::string run = cut_after(2);
  for (int64_t u : {1, 2}) damage(CheckpointFolder(run).path(u) + "/state.h5", "cut");
  const std::string log = file_text(run + "/log.jsonl");
  const std::string said = message_of<DataError>([&] { Trainer(run_options(corpus_, kLoop), run, {}); });
  EXPECT_TRUE(contains(said, run) && contains(said, "none of its checkpoints")) << said;
  EXPECT_EQ(file_text(run + "/log.jsonl"), log) << "the log must survive a refused start";
}

TEST_F(ResumeTest, NoneRefusesWhatIsThere) {
  const ResumeOptions none{ResumeOptions::Kind::none, ""};
  message_of<ConfigError>([&] { Trainer(run_options(corpus_, kLoop), path("whole"), none); });
  EXPECT_EQ(Trainer(run_options(corpus_, "max_updates: 1"), path("new"), none).run().updates, 1);
}

TEST_F(ResumeTest, FromAFolder) {
  const ResumeOptions from{ResumeOptions::Kind::folder, CheckpointFolder(path("saving")).path(6)};
  const std::string said = message_of<ConfigError>([&] { Trainer(run_options(corpus_, kLoop), path("saving"), from); });
  EXPECT_TRUE(contains(said, "updates after 6")) << said;
  Trainer(run_options(corpus_, kLoop), path("branch"), from).run();
  EXPECT_EQ(distance(weights_of(CheckpointFolder(path("branch")).model_path(13)),
                     weights_of(CheckpointFolder(path("whole")).model_path(13))),
            0);
  EXPECT_FALSE(find_model(path("branch")).empty()) << "the best of the branch lie in the branch";
}

TEST_F(ResumeTest, OtherDataOrModelIsRefused) {
  const std::string other = write_corpus(path("other.h5"), {.train = 39});
  std::string said = message_of<DataError>([&] { Trainer(run_options(other, kLoop), path("whole"), {}); });
  EXPECT_TRUE(contains(said, other)) << said;
  said = message_of<DataError>([&] { Trainer(run_options(corpus_, kLoop, {"model.width=20"}), path("whole"), {}); });
  EXPECT_TRUE(contains(said, "has shape")) << said;
}

}  // namespace
}  // namespace tactus
