// Which checkpoints are kept, what their average is, when training ends.
#include "core/files/json.h"
#include "tests/train/run_test_util.h"
#include "train/checkpoint/average.h"
#include "train/checkpoint/state_file.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

std::vector<Json> validations(const std::string& run) {
  std::vector<Json> out;
  std::istringstream log(file_text(run + "/log.jsonl"));
  for (std::string line; std::getline(log, line);) {
    Json json = parse_json(line);
    if (json.at("type").as_string() == "valid") out.push_back(std::move(json));
  }
  return out;
}

TEST_F(RunTest, KeepsBestAndLast) {
  train(run_options(corpus_,
                    "max_updates: 16, validate_every: 2, save_every: 1, keep_best: 3, keep_last: 2, metric: loss"),
        path("run"));
  std::vector<std::pair<double, int64_t>> ranked;
  for (const Json& v : validations(path("run"))) ranked.push_back({v.at("nll").as_double(), v.at("update").as_int()});
  ASSERT_EQ(ranked.size(), 8u);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::set<int64_t> expected = {15, 16};
  for (int i = 0; i < 3; ++i) expected.insert(ranked[static_cast<size_t>(i)].second);
  const CheckpointFolder folder(path("run"));
  const std::vector<int64_t> there = folder.updates();
  EXPECT_EQ(std::set<int64_t>(there.begin(), there.end()), expected);
  for (int64_t u : there) {
    EXPECT_EQ(verify_checkpoint(folder.path(u), u >= 15), "");
    EXPECT_EQ(fs::exists(folder.path(u) + "/state.h5"), u >= 15) << u;
  }
  const TrainState state = read_state_counters(folder.path(16) + "/state.h5");
  ASSERT_EQ(state.best.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(state.best[i].update, ranked[i].second);
  EXPECT_EQ(find_model(path("run")), folder.model_path(ranked[0].second));
}

TEST_F(RunTest, TheLastUpdateIsValidatedEvenWhereSavingComesFirst) {
  const TrainResult r = train(run_options(corpus_, "max_updates: 3, save_every: 3"), path("run"));
  ASSERT_EQ(validations(path("run")).size(), 1u);
  EXPECT_EQ(r.best_update, 3);
  // Again: there is nothing left to do, and nothing is added.
  const std::string log = file_text(path("run/log.jsonl"));
  EXPECT_EQ(train(run_options(corpus_, "max_updates: 3, save_every: 3"), path("run")).best_update, 3);
  EXPECT_EQ(file_text(path("run/log.jsonl")), log);
}

TEST_F(RunTest, AverageIsTheArithmeticMean) {
  train(run_options(corpus_, "max_updates: 9, validate_every: 1, save_every: 1, keep_last: 4, keep_best: 5"),
        path("run"));
  const CheckpointFolder folder(path("run"));
  const TrainState state = read_state_counters(folder.path(9) + "/state.h5");
  std::set<int64_t> best;
  for (size_t i = 0; i < 3; ++i) best.insert(state.best.at(i).update);
  for (const auto& [choice, expected] :
       {std::pair{AverageChoice::last, std::set<int64_t>{7, 8, 9}}, {AverageChoice::best, best}}) {
    const std::vector<long> used = average_checkpoints(path("run"), choice, 3, path("mean.h5"));
    EXPECT_EQ(std::set<int64_t>(used.begin(), used.end()), expected);
    std::map<std::string, std::vector<double>> mean;
    for (int64_t u : expected) {
      for (const auto& [name, values] : weights_of(folder.model_path(u))) {
        mean[name].resize(values.size());
        for (size_t i = 0; i < values.size(); ++i) mean[name][i] += values[i] / 3;
      }
    }
    const auto averaged = weights_of(path("mean.h5"));
    ASSERT_EQ(averaged.size(), mean.size());
    for (const auto& [name, values] : mean) {
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(averaged.at(name)[i], values[i], 1e-7 * std::abs(values[i]) + 1e-12) << name;
    }
    EXPECT_EQ(read_model_info(path("mean.h5")).config_yaml, file_text(path("run/config.yaml")));
  }
  EXPECT_EQ(average_checkpoints(path("run"), AverageChoice::last, 1000, path("mean.h5")).size(),
            folder.updates().size());
  message_of<DataError>([&] { average_checkpoints(path("nowhere"), AverageChoice::last, 3, path("mean.h5")); });
}

TEST_F(RunTest, PatienceEndsTraining) {
  // A rate of zero: the first validation is the best for ever.
  const TrainResult r =
      train(run_options(corpus_, "max_updates: 99, validate_every: 2, patience: 3", {"optimiser.learning_rate=0"}),
            path("run"));
  EXPECT_EQ(r.updates, 2 + 3 * 2);
  EXPECT_EQ(r.best_update, 2);
  EXPECT_EQ(validations(path("run")).size(), 4u);
}

TEST_F(RunTest, EpochsEndTrainingAndEachIsValidated) {
  const RunOptions o = run_options(corpus_, "max_epochs: 3, accumulate: 3");
  const TrainResult r = train(o, path("run"));
  Corpus corpus = Corpus::open(corpus_);
  const int64_t batches = BatchPlan::for_training(corpus.split("train"), o.data.batches, 3).batches();
  EXPECT_EQ(r.updates, 3 * ((batches + 2) / 3));
  EXPECT_EQ(r.epochs, 3);
  EXPECT_EQ(validations(path("run")).size(), 3u);
  EXPECT_EQ(r.best_checkpoint, CheckpointFolder(path("run")).path(r.best_update));
}

TEST_F(RunTest, TimeOfAResumedRunIncludesTheEarlierPart) {
  train(run_options(corpus_, "max_updates: 10"), path("run"));
  const double saved = read_state_counters(CheckpointFolder(path("run")).path(10) + "/state.h5").seconds;
  EXPECT_GT(saved, 0);
  EXPECT_GE(train(run_options(corpus_, "max_updates: 10"), path("run")).seconds, saved);
}

TEST_F(RunTest, ValidationLossNeedsNoBatching) {
  RunOptions o = run_options(corpus_, "max_updates: 5");
  train(o, path("run"));
  const Json first = validations(path("run")).back();
  o.data.batches.max_utterances = 1;
  Trainer alone(o, path("run"), {});
  const auto v = alone.validate();
  ASSERT_TRUE(v.has_value());
  EXPECT_NEAR(v->nll, first.at("nll").as_double(), 1e-5);
  EXPECT_NEAR(v->accuracy, first.at("accuracy").as_double(), 1e-12);
}

TEST_F(RunTest, ValidationKeepsUtterancesWithoutFrames) {
  const TrainResult r = train(run_options(corpus_, "max_updates: 2", {"data.valid=test"}), path("run"));
  EXPECT_TRUE(std::isfinite(validations(path("run")).back().at("nll").as_double()));
  EXPECT_EQ(r.best_update, 2);
}

TEST_F(RunTest, WrongFeaturesOrMissingSourceTokensAreConfigErrors) {
  std::string said =
      message_of<ConfigError>([&] { Trainer(run_options(corpus_, "", {"model.features=9"}), path("r"), {}); });
  EXPECT_TRUE(contains(said, "model.features is 9") && contains(said, "8 feature bins")) << said;
  write_toy_corpus(path("bare.h5"), {30, 40, 50, 30}, 8, false);
  said =
      message_of<ConfigError>([&] { Trainer(run_options(path("bare.h5"), "", {"data.valid=train"}), path("r"), {}); });
  EXPECT_TRUE(contains(said, "source tokenizer")) << said;
}

}  // namespace
}  // namespace tactus
