// Mixtures, normalisation and cut items in whole runs.
#include "train/loop/train_data.h"

#include "core/files/json.h"
#include "tests/train/run_test_util.h"
#include "train/bench/io_bench.h"
#include "train/predict/decoder_run.h"

namespace tactus {
namespace {

TEST_F(RunTest, MixturesTrainAndResumeBitForBit) {
  write_corpus(path("second.h5"), {.train = 25});
  const std::vector<std::string> set = {
      "data.mix={a: {corpus: '" + corpus_ + "'}, b: {corpus: '" + path("second.h5") + "', weight: 3}}",
      "data.temperature=2", "data.loader_threads=3"};
  const RunOptions o = run_options(corpus_, "max_updates: 14, log_every: 1, save_every: 5, keep_last: 9", set);
  train(o, path("whole"));
  RunOptions half = o;
  half.train.max_updates = 5;
  train(half, path("parts"));
  train(o, path("parts"));
  EXPECT_EQ(distance(weights_of(CheckpointFolder(path("parts")).model_path(14)),
                     weights_of(CheckpointFolder(path("whole")).model_path(14))),
            0);
}

TEST_F(RunTest, MixturesOfOtherFeaturesOrTokenizersAreRefused) {
  write_corpus(path("other.h5"), {.low_hz = 40});
  write_corpus(path("words.h5"), {.vocabulary = 50});
  const auto says = [&](const std::string& file) {
    const RunOptions o = run_options(corpus_, "", {"data.mix={b: {corpus: '" + path(file) + "'}}"});
    return message_of<ConfigError>([&] { TrainData::open(o.data, 1); });
  };
  for (const char* part : {"data.mix.b: ", "different features", "other.h5", "corpus.h5"}) {
    EXPECT_TRUE(contains(says("other.h5"), part)) << says("other.h5");
  }
  EXPECT_TRUE(contains(says("words.h5"), "different target tokenizers")) << says("words.h5");
}

TEST_F(RunTest, GlobalStatisticsTravelWithTheModel) {
  train(run_options(corpus_, "max_updates: 2", {"data.cmvn=global"}), path("run"));
  const std::string model = CheckpointFolder(path("run")).model_path(2);
  const ModelInfo info = read_model_info(model);
  Corpus corpus = Corpus::open(corpus_);
  ASSERT_TRUE(info.statistics.has_value());
  EXPECT_EQ(info.statistics->frames, corpus.split("train")->moments().frames);
  EXPECT_EQ(info.statistics->sum, corpus.split("train")->moments().sum);
  EXPECT_EQ(info.statistics->squares, corpus.split("train")->moments().squares);
  // An average keeps them, and decoding uses them on a corpus of other statistics.
  average_model_files({model, model}, path("average.h5"));
  EXPECT_EQ(read_model_info(path("average.h5")).statistics->sum, info.statistics->sum);
  LoadedModel loaded = load_model(path("average.h5"), "cpu", 1);
  const DecodeReport with = decode_split(loaded, corpus, "dev");
  for (double& s : loaded.info.statistics->squares) s *= 4;
  const DecodeReport without = decode_split(loaded, corpus, "dev");
  EXPECT_NE(with.lines[0].score, without.lines[0].score);
  loaded.info.statistics.reset();
  EXPECT_TRUE(contains(message_of<DataError>([&] { decode_split(loaded, corpus, "dev"); }), "holds no statistics"));
}

TEST_F(RunTest, StatisticsFilesAreChecked) {
  Corpus corpus = Corpus::open(corpus_);
  write_statistics(path("s.h5"), corpus.feature_hash(), corpus.split("dev")->moments());
  RunOptions o = run_options(corpus_, "", {"data.cmvn=global", "data.cmvn_stats=" + path("s.h5")});
  EXPECT_EQ(TrainData::open(o.data, 1).statistics->frames, corpus.split("dev")->moments().frames);
  write_statistics(path("s.h5"), "other", corpus.split("dev")->moments());
  EXPECT_TRUE(contains(message_of<DataError>([&] { TrainData::open(o.data, 1); }), path("s.h5")));
  o.data.cmvn = "utterance";
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { TrainData::open(o.data, 1); }), "data.cmvn_stats is for"));
  o.data.cmvn_stats = "";
  o.data.temperature = 2;
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { TrainData::open(o.data, 1); }), "data.temperature is for"));
}

TEST_F(RunTest, StatisticsComeFromACommand) {
  const Outcome made = tactus({"statistics", corpus_, "--split", "dev", "--out", path("s.h5")});
  EXPECT_EQ(made.code, 0) << made.err;
  const RunOptions o = run_options(corpus_, "", {"data.cmvn=global", "data.cmvn_stats=" + path("s.h5")});
  EXPECT_EQ(TrainData::open(o.data, 1).statistics->sum, Corpus::open(corpus_).split("dev")->moments().sum);
  EXPECT_EQ(tactus({"statistics", corpus_, "--split", "none", "--out", path("t.h5")}).code, 3);
}

TEST_F(RunTest, BenchIoReadsACorpus) {
  const Outcome r = tactus({"bench", "io", "--corpus", corpus_, "--seconds", "0.05", "--max-frames", "300", "--dtype",
                            "bf16", "--device", "cpu", "--json", path("io.json")});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "frames/s"));
  EXPECT_GT(parse_json(file_text(path("io.json"))).at("frames_per_second").as_double(), 0);
  EXPECT_EQ(tactus({"bench", "io", "--corpus", corpus_, "--dtype", "f16"}).code, 2);
}

TEST_F(RunTest, LoaderThreadsDoNotChangeARun) {
  train(run_options(corpus_, "max_updates: 8", {"data.loader_threads=1", "data.prefetch=1"}), path("one"));
  train(run_options(corpus_, "max_updates: 8", {"data.loader_threads=5", "data.prefetch=7"}), path("five"));
  EXPECT_EQ(distance(weights_of(CheckpointFolder(path("one")).model_path(8)),
                     weights_of(CheckpointFolder(path("five")).model_path(8))),
            0);
}

TEST(IoBench, MeasuresAMadeUpCorpus) {
  IoBenchOptions o;
  o.synthetic = 30000;
  o.max_frames = 5000;
  o.seconds = 0.05;
  const IoBenchResult r = bench_io(o, Context::cpu(1));
  EXPECT_GT(r.frames, 0);
  EXPECT_GT(r.frames_per_second, 1000);
  EXPECT_FALSE(r.pinned);
  EXPECT_TRUE(contains(r.to_string(), "frames/s"));
  EXPECT_TRUE(contains(r.to_json(o), "\"frames_per_second\""));
}

}  // namespace
}  // namespace tactus
