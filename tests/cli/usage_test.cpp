// Usage, configuration errors, and the commands that explain things.
#include "tests/cli/cli_test_util.h"

namespace tactus {
namespace {

TEST_F(CliTest, Usage) {
  expect_error({}, 2, {"subcommand is required", "--help"});
  expect_error({"fly"}, 2, {});
  expect_error({"train"}, 2, {"CONFIG"});
  expect_error({"train", "a.yaml", "--sets", "x=1"}, 2, {"--sets"});
  expect_error({"decode", "run", "--data", "test", "--beam", "0"}, 2, {"--beam"});
  const Outcome help = tactus({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"train", "check", "decode", "score", "average", "table", "prepare", "info", "explain"}) {
    EXPECT_TRUE(contains(help.out, command)) << command;
    const Outcome o = tactus({command, "--help"});
    EXPECT_EQ(o.code, 0) << command;
    EXPECT_GT(o.out.size(), 100u) << command;
  }
  const Outcome version = tactus({"--version"});
  EXPECT_EQ(version.code, 0);
  for (const char* part : {"tactus ", "built by", "CUDA", "audio", "Apache-2.0", "Eigen (MPL-2.0)", "HDF5 1.",
                           "yaml-cpp (MIT)", "CLI11 ", "SentencePiece (Apache-2.0)"})
    EXPECT_TRUE(contains(version.out, part)) << part << ": " << version.out;
}

TEST_F(CliTest, ConfigurationErrors) {
  expect_error({"train", path("none.yaml"), "--run", path("r")}, 2, {"none.yaml"});
  const std::string wrong = write("wrong.yaml", config_text(corpus_, "max_updates: 3") + "optimizer: {beta1: 0.5}\n");
  const int64_t line = static_cast<int64_t>(lines_of(file_text(wrong)).size());
  expect_error({"train", wrong, "--run", path("r")}, 2,
               {"wrong.yaml:" + std::to_string(line), "optimizer", "optimiser"});
  const std::string yaml = config("max_updates: 3");
  const auto with = [&](const std::string& setting) {
    return std::vector<std::string>{"train", yaml, "--run", path("r"), "--set", setting};
  };
  expect_error(with("train.max_update=5"), 2, {"max_update", "max_updates"});
  expect_error(with("train.max_updates=many"), 2, {"train.max_updates", "many"});
  expect_error(with("train.max_updates=0"), 2, {"train.max_updates", "0"});
  expect_error(with("model.decoder.attention.type=mtl"), 2, {"attention.type", "mtl", "mtla"});
  expect_error(with("nonsense"), 2, {"nonsense"});
  expect_error(with("model.features=80"), 2, {"model.features is 80", "8 feature bins"});
  expect_error({"train", write("syntax.yaml", "seed: [1\nmodel: }"), "--run", path("r")}, 2, {"syntax.yaml:"});
  expect_error({"train", yaml, "--run", path("r"), "--gpus", "2"}, 2, {"--gpus 2"});
  EXPECT_FALSE(std::filesystem::exists(path("r"))) << "a refused start leaves no run folder";
  if (!Context::cuda_available()) {
    expect_error({"train", yaml, "--run", path("r"), "--device", "cuda"}, 2, {"CUDA"});
    EXPECT_FALSE(std::filesystem::exists(path("r")));
  }
  expect_error({"train", yaml, "--run", path("r"), "--device", "tpu"}, 2, {"tpu", "cuda"});
}

TEST_F(CliTest, Explain) {
  const Outcome one = tactus({"explain", "optimiser.warmup_updates"});
  EXPECT_EQ(one.code, 0) << one.err;
  for (const char* part : {"optimiser.warmup_updates", "int", "updates", "10000", ">= 1", "warm-up"})
    EXPECT_TRUE(contains(one.out, part)) << part << ": " << one.out;
  EXPECT_FALSE(contains(one.out, "learning_rate"));
  EXPECT_TRUE(contains(tactus({"explain", "model.decoder.attention"}).out, "model.decoder.attention.stride"));
  const Outcome all = tactus({"explain"});
  EXPECT_EQ(all.code, 0);
  for (const char* key :
       {"data.corpus", "decode.beam", "target.vocab_size", "average_count", "rows.NAME.config  (string; required)"})
    EXPECT_TRUE(contains(all.out, key)) << key;
  expect_error({"explain", "optimiser.warmup_update"}, 2, {"no key", "'optimiser.warmup_updates'"});
}

TEST_F(CliTest, CheckTrainsNothing) {
  const std::string yaml = config("max_updates: 3, accumulate: 4");
  const Outcome o = tactus({"check", yaml});
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* part : {"device: ", "plan: ", "updates an epoch", "parameters", "largest batch", "peak memory"})
    EXPECT_TRUE(contains(o.out, part)) << part << ": " << o.out;
  expect_error({"check", yaml, "--set", "data.train=trian"}, 3, {"trian", "train"});
  expect_error({"check", yaml, "--set", "data.batches.max_frames=25"}, 3, {"max_frames"});
  write_toy_corpus(path("bare.h5"), {30, 40, 50, 30}, 8, false);
  expect_error({"check", yaml, "--set", "data.corpus=" + path("bare.h5"), "--set", "data.valid=train"}, 2,
               {"source tokenizer"});
}

TEST_F(CliTest, InfoOfEveryKindOfFile) {
  trained("run");
  const std::string step = CheckpointFolder(path("run")).path(6);
  for (const std::string& file : {path("run"), step, step + "/model.h5"}) {
    const Outcome o = tactus({"info", file});
    EXPECT_EQ(o.code, 0) << o.err;
    for (const char* part : {"model.h5", "parameters", "target vocabulary 60", "conv_channels: 16"})
      EXPECT_TRUE(contains(o.out, part)) << part << ": " << o.out;
  }
  const Outcome state = tactus({"info", step + "/state.h5"});
  EXPECT_EQ(state.code, 0) << state.err;
  EXPECT_TRUE(contains(state.out, "training state of update 6")) << state.out;
  const Outcome corpus = tactus({"info", corpus_});
  EXPECT_EQ(corpus.code, 0) << corpus.err;
  for (const char* part : {"train", "dev", "test", "40", "60"}) EXPECT_TRUE(contains(corpus.out, part)) << corpus.out;
  write("toy.model", Corpus::open(corpus_).target_tokenizer().blob());
  EXPECT_TRUE(contains(tactus({"info", path("toy.model")}).out, "unigram tokenizer, 60 pieces"));
  expect_error({"info", path("missing.h5")}, 3, {"missing.h5"});
  expect_error({"info", write("text.h5", "no HDF5")}, 3, {"text.h5"});
  expect_error({"info", cut(step + "/model.h5", 0.5, "half.h5")}, 3, {"half.h5"});
}

}  // namespace
}  // namespace tactus
