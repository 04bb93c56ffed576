// Damaged checkpoints: a resumed run takes an older one, a reader gives one clean error, nothing crashes, hangs or
// takes memory that the files do not justify.
#include <hdf5.h>

#include "tests/train/run_test_util.h"
#include "train/checkpoint/state_file.h"
#include "train/predict/decoder_run.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Bytes changed, cut, repeated or zeroed; `head`: how much of the front is damaged more often than the rest.
std::string mutated(const std::string& bytes, size_t head, Rng& rng) {
  std::string out = bytes;
  const auto place = [&] { return rng.below(rng.below(2) == 0 ? std::min(head, out.size()) : out.size()); };
  switch (rng.below(4)) {
    case 0:
      out.resize(rng.below(out.size()));
      break;
    case 1: {
      const size_t at = place(), count = std::min<size_t>(1 + rng.below(64), out.size() - at);
      out.replace(at, count, rng.below(2) == 0 ? std::string(count, '\0') : out.substr(rng.below(at + 1), count));
      break;
    }
    case 2:
      for (uint64_t n = 1 + rng.below(20); n > 0; --n) out[place()] = static_cast<char>(rng.next());
      break;
    default:
      for (uint64_t n = 1 + rng.below(3); n > 0; --n) out[place()] ^= static_cast<char>(1 << rng.below(8));
  }
  return out;
}

class CheckpointFuzzTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    options_ = run_options(corpus_, "max_updates: 3, save_every: 1, keep_last: 3");
    train(options_, path("run"));
    for (const char* name : {"model.h5", "state.h5", "manifest.json"}) good_[name] = file_text(step() + "/" + name);
  }
  std::string step() const { return folder().path(3); }
  CheckpointFolder folder() const { return CheckpointFolder(path("run")); }
  void put(const std::string& name, const std::string& bytes) const { write("run/checkpoints/step-3/" + name, bytes); }
  void restore() const {
    for (const auto& [name, bytes] : good_) put(name, bytes);
  }

  /// Whether f gives its result; where it does not it must throw a DataError (or, for a configuration inside a model
  /// file, a ConfigError) of one line, and soon.
  template <class F>
  static bool survives(F&& f) {
    const auto begin = Clock::now();
    bool result = true;
    try {
      f();
    } catch (const Error& e) {
      EXPECT_TRUE(e.exit_code() == 2 || e.exit_code() == 3) << e.what();
      EXPECT_FALSE(contains(e.what(), "\n")) << e.what();
      result = false;
    }
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 2);
    return result;
  }
  /// Newest checkpoint that would be resumed from; warnings are not shown.
  int64_t newest() const {
    testing::internal::CaptureStderr();
    std::optional<int64_t> update;
    survives([&] { update = folder().newest(); });
    const std::string said = testing::internal::GetCapturedStderr();
    if (update != 3) {
      EXPECT_TRUE(contains(said, "warning: checkpoint ignored: ")) << said;
    }
    return update.value_or(-1);
  }
  /// Changes a dataset of a file of the checkpoint by the library itself, so that all of its checksums are right.
  template <class F>
  void edit(const std::string& name, F change) const {
    const hid_t file = H5Fopen((step() + "/" + name).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file, 0);
    change(file);
    H5Fclose(file);
  }

  RunOptions options_;
  std::map<std::string, std::string> good_;
};

/// A dataset that claims `count` numbers and has none.
void claim(hid_t file, const char* name, hsize_t count) {
  H5Ldelete(file, name, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_alloc_time(properties, H5D_ALLOC_TIME_LATE);
  const hid_t data = H5Dcreate2(file, name, H5T_NATIVE_UINT8, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  EXPECT_GE(data, 0);
  H5Dclose(data), H5Pclose(properties), H5Sclose(space);
}

TEST_F(CheckpointFuzzTest, Manifests) {
  Rng rng(1);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    put("manifest.json", mutated(good_["manifest.json"], 400, rng));
    const int64_t update = newest();
    EXPECT_TRUE(update == 2 || update == 3) << update;
    refused += update == 2;
    survives([&] { find_model(step()); });
  }
  EXPECT_GT(refused, 200);
}

TEST_F(CheckpointFuzzTest, ManifestsThatSayOtherThings) {
  const std::string& good = good_["manifest.json"];
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = good;
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), instead);
  };
  const std::string many(1 << 20, '['), maps(1 << 16, '{');
  const std::vector<std::string> bad = {"",
                                        "\n",
                                        "null",
                                        "[]",
                                        "{}",
                                        "\xff\xfe{}",
                                        std::string(4096, '\0'),
                                        many,
                                        maps,
                                        "[" + std::string(1 << 20, ','),
                                        R"({"format": "tactus checkpoint", "version": 1, "files": []})",
                                        R"({"format": "tactus checkpoint", "version": 1, "files": {}})",
                                        R"({"format": "tactus checkpoint", "version": 1, "files": [1, null]})",
                                        with("tactus checkpoint", "other checkpoint"),
                                        with("\"version\": 1", "\"version\": 2"),
                                        with("model.h5", "../step-2/model.h5"),
                                        with("model.h5", "/etc/passwd"),
                                        with("model.h5", "state.h5"),
                                        with("model.h5", ""),
                                        with("model.h5", "."),
                                        with("\"bytes\": ", "\"bytes\": -"),
                                        with("\"bytes\": ", "\"bytes\": 99999999999999999999"),
                                        with("\"bytes\": ", "\"bytes\": \""),
                                        good + good,
                                        with("\"files\"", "\"fils\"")};
  for (const std::string& text : bad) {
    put("manifest.json", text);
    EXPECT_EQ(newest(), 2) << text.substr(0, 200);
    EXPECT_FALSE(survives([&] { find_model(step()); })) << text.substr(0, 200);
  }
}

TEST_F(CheckpointFuzzTest, AnOlderCheckpointTakesThePlaceOfADamagedOne) {
  Rng rng(2);
  for (const char* name : {"model.h5", "state.h5"}) {
    for (int round = 0; round < 60; ++round) {
      const std::string bytes = mutated(good_[name], 4000, rng);
      if (bytes == good_[name]) continue;
      put(name, bytes);
      EXPECT_EQ(newest(), 2);
    }
    restore();
  }
  EXPECT_EQ(newest(), 3);
}

/// Without a manifest nothing vouches for a model file: `tactus decode model.h5`.
TEST_F(CheckpointFuzzTest, ModelFiles) {
  Rng rng(3);
  const std::string file = path("model.h5");
  int refused = 0;
  for (int round = 0; round < 250; ++round) {
    write("model.h5", mutated(good_["model.h5"], 6000, rng));
    const bool good = survives([&] {
      LoadedModel model = load_model(file, "cpu", 1);
      model.target.decode(model.target.encode("one morning"));
    });
    refused += !good;
    survives([&] { Tokenizer::load({.file = file}, "target"); });
  }
  EXPECT_GT(refused, 100);
}

/// A state whose manifest is right, as if it had been damaged before it was saved.
TEST_F(CheckpointFuzzTest, StateFiles) {
  Rng rng(4);
  const std::string file = path("state.h5");
  SpeechTask task(make_context("cpu", 1), options_, 60, 40, true);
  const Optimiser optimiser(options_.optimiser, task.store(), 3);
  int refused = 0;
  for (int round = 0; round < 250; ++round) {
    write("state.h5", mutated(good_["state.h5"], 6000, rng));
    refused += !survives([&] { read_state_file(file, task.store(), optimiser); });
  }
  EXPECT_GT(refused, 100);
}

TEST_F(CheckpointFuzzTest, FilesThatClaimMoreThanTheyHold) {
  // Enough to be seen, not enough to hurt a machine where the check is missing.
  constexpr hsize_t kClaim = hsize_t{1} << 30;
  ASSERT_LT(good_["model.h5"].size() * 1032, kClaim);
  const std::string model = step() + "/model.h5";
  edit("model.h5", [](hid_t file) { claim(file, "/tokenizer/target", kClaim); });
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_TRUE(contains(message_of<DataError>([&] { load_model(model, "cpu", 1); }), "can hold"));
  EXPECT_TRUE(contains(message_of<DataError>([&] { Tokenizer::load({.file = model}, "target"); }), "can hold"));
  restore();
  const std::string weight = "/weights/" + h5::File::open(model).list("/weights").front();
  edit("model.h5", [&](hid_t file) { claim(file, weight.c_str(), kClaim); });
  EXPECT_TRUE(contains(message_of<DataError>([&] { load_model(model, "cpu", 1); }), weight.substr(9)));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10) << "KiB";
  restore();
  edit("state.h5", [](hid_t file) { claim(file, "/best_updates", hsize_t{1} << 60); });
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_state_counters(step() + "/state.h5"); }), "can hold"));
  restore();
  edit("state.h5", [](hid_t file) { claim(file, "/best_metrics", 7); });
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { read_state_counters(step() + "/state.h5"); }), "best updates with 7"));
}

/// Counters beyond everything, in a checkpoint that verifies: one error when the run would go on.
TEST_F(CheckpointFuzzTest, ImpossibleCounters) {
  SpeechTask task(make_context("cpu", 1), options_, 60, 40, true);
  const Optimiser optimiser(options_.optimiser, task.store(), 3);
  const TrainState good = load_checkpoint(step(), task.store(), optimiser);
  const ModelInfo info = read_model_info(step() + "/model.h5");
  const auto refused = [&](auto change) {
    TrainState state = good;
    change(state);
    folder().save(state, info, task.store(), optimiser);
    return message_of<DataError>([&] { Trainer(options_, path("run"), {}).run(); });
  };
  for (int64_t bad : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(refused([&](TrainState& s) { s.epoch = bad; }), "");
    EXPECT_NE(refused([&](TrainState& s) { s.next_batch = bad; }), "");
  }
  EXPECT_TRUE(contains(refused([](TrainState& s) { s.frames = -7; }), "state.h5: frames is -7"));
}

TEST_F(CheckpointFuzzTest, FoldersWithOddNames) {
  for (const char* name : {"step-99999999999999999999999", "step-", "step-03", "step--1", "step-1x", "step- 4"})
    fs::create_directories(path("run/checkpoints/") + name);
  EXPECT_EQ(folder().updates(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(newest(), 3);
  EXPECT_TRUE(survives([&] { find_model(path("run")); }));
}

}  // namespace
}  // namespace tactus
