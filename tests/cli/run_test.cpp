// Training, decoding, scoring and tables from the command line, and damaged input to each.
#include <set>

#include "tests/cli/cli_test_util.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

TEST_F(CliTest, DamagedCorpora) {
  const std::string yaml = config("max_updates: 3");
  const auto with = [&](const std::string& corpus) {
    return std::vector<std::string>{"train", yaml, "--run", path("r"), "--set", "data.corpus=" + corpus};
  };
  expect_error(with(path("missing.h5")), 3, {"missing.h5"});
  expect_error(with(write("text.h5", "not a corpus")), 3, {"text.h5"});
  for (double share : {0.02, 0.5, 0.97}) expect_error(with(cut(corpus_, share, "half.h5")), 3, {"half.h5"});
  expect_error(with(path("")), 3, {"folder"});
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(CliTest, DecodesOneLineForEveryInput) {
  trained("run");
  const Outcome o = tactus({"decode", path("run"), "--data", "test", "--threads", "1"});
  ASSERT_EQ(o.code, 0) << o.err;
  const std::vector<std::string> lines = lines_of(o.out);
  const auto test = Corpus::open(corpus_).split("test");
  ASSERT_EQ(static_cast<int64_t>(lines.size()), 1 + test->size());
  EXPECT_EQ(lines[0], "id\thypothesis\tscore");
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].substr(0, lines[i].find('\t')), test->id(static_cast<int64_t>(i) - 1));
    EXPECT_EQ(std::count(lines[i].begin(), lines[i].end(), '\t'), 2);
  }
  EXPECT_TRUE(contains(o.err, "left empty: 1 utterances")) << o.err;
  for (const char* part : {"decoded 10 utterances", "memory: ", "cache: "}) EXPECT_TRUE(contains(o.err, part)) << o.err;
  const std::string step = CheckpointFolder(path("run")).path(6);
  for (const std::string& model : {step, step + "/model.h5"}) {
    EXPECT_EQ(tactus({"decode", model, "--data", "test", "--threads", "1", "--out", path("o.tsv")}).code, 0);
    EXPECT_EQ(lines_of(file_text(path("o.tsv"))).size(), lines.size());
  }
  const Outcome greedy = tactus({"decode", path("run"), "--data", "test", "--beam", "1", "--threads", "1"});
  const Outcome set = tactus({"decode", path("run"), "--data", "test", "--set", "decode.beam=1", "--threads", "1"});
  EXPECT_EQ(greedy.code, 0) << greedy.err;
  EXPECT_EQ(greedy.out, set.out);
}

TEST_F(CliTest, WrongInputToDecode) {
  trained("run");
  const std::string step = CheckpointFolder(path("run")).path(6);
  const auto decode = [&](const std::string& model, const std::vector<std::string>& more = {}) {
    std::vector<std::string> a = {"decode", model, "--data", "test", "--out", path("o.tsv")};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  expect_error(decode(path("nowhere")), 3, {"nowhere"});
  for (double share : {0.1, 0.5, 0.95}) expect_error(decode(cut(step + "/model.h5", share, "half.h5")), 3, {"half.h5"});
  expect_error(decode(step + "/state.h5"), 3, {"state.h5", "not a model file"});
  expect_error(decode(corpus_), 3, {"not a model file"});
  const std::string words = write_corpus(path("words.h5"), {.vocabulary = 50});
  expect_error(decode(path("run"), {"--corpus", words}), 3, {"words.h5", "tokenizer"});
  const std::string bank = write_corpus(path("bank.h5"), {.low_hz = 50});
  expect_error(decode(path("run"), {"--corpus", bank}), 3, {"bank.h5", "features"});
  expect_error(decode(path("run"), {"--corpus", cut(corpus_, 0.5, "halfc.h5")}), 3, {"halfc.h5"});
  expect_error({"decode", path("run"), "--data", "tset"}, 3, {"tset", "test"});
  expect_error(decode(path("run"), {"--set", "decode.beams=3"}), 2, {"beams", "beam"});
  expect_error({"decode", path("run"), "--data", "test", "--out", path("no/such/folder/o.tsv")}, 1, {"no/such/folder"});
  // A checkpoint whose files do not fit their manifest.
  fs::resize_file(step + "/model.h5", fs::file_size(step + "/model.h5") / 2);
  expect_error(decode(step), 3, {"model.h5", "manifest"});
  EXPECT_FALSE(fs::exists(path("o.tsv")));
}

TEST_F(CliTest, AverageAndScore) {
  trained("run");
  Outcome o = tactus({"average", path("run"), "--last", "2"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "average of updates 4 6: ")) << o.out;
  EXPECT_EQ(find_model(path("run")), path("run/average.h5"));
  expect_error({"average", path("nowhere")}, 3, {"nowhere"});
  expect_error({"average", path("run"), "--last", "2", "--best", "2"}, 2, {});
  write("ref.txt", "the cat sat on the mat\nit is half past nine now\n");
  write("hyp.txt", "the cat sat on the mat\nit is half past ten now\n");
  o = tactus({"score", path("hyp.txt"), path("ref.txt"), "--metric", "bleu,wer"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(lines_of(o.out).size(), 2u) << o.out;
  EXPECT_TRUE(contains(o.out, "BLEU") && contains(o.out, "WER") && contains(o.out, "8.33")) << o.out;
  o = tactus({"score", path("hyp.txt"), path("ref.txt"), "--against", path("ref.txt")});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(lines_of(o.out).size(), 2u) << o.out;
  expect_error({"score", path("hyp.txt"), path("ref.txt"), "--metric", "blue"}, 2, {"blue", "bleu"});
  expect_error({"score", path("hyp.txt"), path("none.txt")}, 3, {"none.txt"});
  expect_error({"score", path("hyp.txt"), write("short.txt", "one line\n")}, 3, {"short.txt"});
}

TEST_F(CliTest, SigtermDuringTrainingAndValidation) {
  // Validation takes most of the time of this run, so that a signal falls into one sooner or later.
  const std::string big = write_corpus(path("big.h5"), {.train = 30, .valid = 1500});
  const std::string yaml =
      write("v.yaml", config_text(big, "max_updates: 4, validate_every: 1, log_every: 1, keep_last: 9"));
  ASSERT_EQ(tactus({"train", yaml, "--run", path("whole")}).code, 0);
  int stopped = 0;
  for (int i = 0; i < 4; ++i) {
    Process child(folder_.string(), {"train", yaml, "--run", path("run")});
    const std::string line = "\"update\": " + std::to_string(i + 1) + ",";
    ASSERT_TRUE(child.wait_for([&] { return contains(file_text(path("run/log.jsonl")), line); })) << child.err();
    child.send(SIGTERM);
    const Outcome o = child.wait();
    EXPECT_EQ(o.code, 143) << o.err;
    EXPECT_FALSE(o.killed) << "it ends by itself, after saving";
    EXPECT_TRUE(contains(o.err, "holds a checkpoint of update " + std::to_string(i + 1))) << o.err;
    // The training line was written, the validation one was not: the signal fell into the validation.
    stopped += !contains(lines_of(file_text(path("run/log.jsonl"))).back(), "valid");
  }
  EXPECT_GE(stopped, 1);
  ASSERT_EQ(tactus({"train", yaml, "--run", path("run")}).code, 0);
  EXPECT_EQ(repeatable_log(path("run")), repeatable_log(path("whole")));
  EXPECT_EQ(model_bytes(path("run"), 4), model_bytes(path("whole"), 4));
}

TEST_F(CliTest, SigtermDuringDecoding) {
  trained("run");
  const std::string big = write_corpus(path("big.h5"), {.train = 1, .valid = 1, .test = 4000});
  Process child(folder_.string(), {"decode", path("run"), "--data", "test", "--corpus", big, "--threads", "1", "--out",
                                   path("o.tsv"), "--set", "decode.max_length=200"});
  ASSERT_TRUE(child.wait_for([&] { return contains(child.err(), "decoded batch 1 "); }));
  child.send(SIGTERM);
  expect_failed(child.wait(), 143, {"stopped by a signal"});
  EXPECT_FALSE(fs::exists(path("o.tsv")));
}

TEST_F(CliTest, TableIsMadeOnceAndPrintedAgain) {
  config("max_epochs: 2");
  const std::string table =
      write("table.yaml", "title: Two rows\nrun: '" + path("table") +
                              "'\naverage_count: 2\nsamples: 2\nrows:\n"
                              "  MHA:\n    config: run.yaml\n    set: [model.decoder.attention.type=mha, "
                              "model.decoder.attention.head_dim=8]\n    paper_bleu: 23.5\n"
                              "  MTLA:\n    config: run.yaml\n");
  const Outcome first = tactus({"table", table, "--set", "model.decoder.attention.stride=3"});
  ASSERT_EQ(first.code, 0) << first.err;
  for (const char* part :
       {"Two rows", "MHA", "MTLA", "BLEU", "nearest text", "23.50", "cache B/pos/layer", "reference: "})
    EXPECT_TRUE(contains(first.out, part)) << part << ": " << first.out;
  // Two heads of 8, keys and values: 32 numbers. A latent of 8 and a rope key of 4 for every three rows: 4.
  EXPECT_TRUE(contains(first.out, "128") && contains(first.out, "16 (8.0")) << first.out;
  for (const char* name : {"table.md", "table.html", "table.json", "MHA/average.h5", "MTLA/decode/test.tsv"})
    EXPECT_TRUE(fs::exists(path("table/") + name)) << name;
  std::map<std::string, fs::file_time_type> times;
  for (const auto& e : fs::recursive_directory_iterator(path("table/MHA"))) times[e.path()] = fs::last_write_time(e);
  const Outcome again = tactus({"table", table, "--set", "model.decoder.attention.stride=3"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_TRUE(contains(again.err, "MTLA: done before")) << again.err;
  for (const auto& e : fs::recursive_directory_iterator(path("table/MHA")))
    EXPECT_EQ(fs::last_write_time(e), times[e.path()]) << e.path();
  expect_error({"table", table, "--rows", "MLA"}, 2, {"no row 'MLA'"});
  expect_error({"table", path("none.yaml")}, 2, {"none.yaml"});
}

TEST_F(CliTest, TableStoppedBySigtermGoesOn) {
  config("max_updates: 300, save_every: 50, log_every: 1");
  const std::string table = write("table.yaml", "run: '" + path("table") + "'\nrows:\n  A:\n    config: run.yaml\n");
  Process child(folder_.string(), {"table", table});
  ASSERT_TRUE(child.wait_for([&] { return fs::exists(path("table/A/log.jsonl")); })) << child.err();
  child.send(SIGTERM);
  expect_failed(child.wait(), 143, {"A: stopped by a signal", "run the table again"});
  EXPECT_FALSE(fs::exists(path("table/table.json")));
  const Outcome o = tactus({"table", table});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.err, "resumed from")) << o.err;
}

TEST_F(CliTest, ResumeIsSaidAndWrongResumesAreRefused) {
  trained("run");
  const std::string yaml = config("max_updates: 6, save_every: 2, log_every: 2");
  const Outcome again = tactus({"train", yaml, "--run", path("run")});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(contains(again.err, "resumed from")) << again.err;
  expect_error({"train", yaml, "--run", path("run"), "--resume", "none"}, 2, {"already holds checkpoints"});
  expect_error({"train", yaml, "--run", path("new"), "--resume", path("nowhere")}, 3, {"nowhere"});
  for (int64_t u : CheckpointFolder(path("run")).updates()) {
    if (fs::exists(CheckpointFolder(path("run")).path(u) + "/state.h5"))
      fs::resize_file(CheckpointFolder(path("run")).path(u) + "/state.h5", 1000);
  }
  expect_error({"train", yaml, "--run", path("run")}, 3, {"none of its checkpoints"});
}

TEST_F(CliTest, ReaderThatWentAway) {
  // Standard output on a full device: an error, not silence.
  const std::string command = std::string(TACTUS_BINARY_DIR) + "/tactus explain > /dev/full 2> " + path("err.txt");
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(contains(file_text(path("err.txt")), "standard output cannot be written"));
}

}  // namespace
}  // namespace tactus
