// Faults that speech toolkits have been reported to have, from sound and text to decoded lines.
#include "tests/cli/cli_test_util.h"
#include "tests/data/audio/audio_test_util.h"
#include "train/predict/decoder_run.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

/// Twelve sounds for training and four for validation; `test` is each test's own.
class FaultsTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    fs::create_directories(path("m/wav"));
    std::string train, dev;
    for (int i = 0; i < 16; ++i) {
      sound(std::to_string(i), sine(6000 + 700 * i, 300 + 50 * i, 16000));
      (i < 12 ? train : dev) +=
          row("utt" + std::to_string(i), std::to_string(i), toy_item(i).tgt_text, toy_item(i).src_text);
    }
    manifest("train", train), manifest("dev", dev);
    write("recipe.yaml", "input: {path: '" + path("m") +
                             "'}\nfeatures: {mel_bins: 8}\ntarget: {vocab_size: 40}\n"
                             "source: {model: unigram, vocab_size: 40}\n");
  }
  void sound(const std::string& name, const std::vector<float>& wave) const {
    write_sound(path("m/wav/" + name + ".wav"), wave, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  }
  static std::string row(const std::string& id, const std::string& wave, const std::string& target,
                         const std::string& source = "one two three four five minutes past ten please") {
    return id + "\twav/" + wave + ".wav\t" + target + "\t" + source + "\n";
  }
  void manifest(const std::string& split, const std::string& rows) const {
    write("m/" + split + ".tsv", "id\taudio\ttgt_text\tsrc_text\n" + rows);
  }
  Outcome prepare(const std::vector<std::string>& set = {}, const std::string& out = "c") const {
    std::vector<std::string> arguments = {"prepare", path("recipe.yaml"), "--out", path(out)};
    for (const std::string& s : set) arguments.insert(arguments.end(), {"--set", s});
    return tactus(arguments);
  }
  Outcome train_on(const std::string& corpus, const std::string& run,
                   const std::string& loop = "max_updates: 3") const {
    write("run.yaml", config_text(path(corpus), loop));
    return tactus({"train", path("run.yaml"), "--run", path(run)});
  }
  /// The hypotheses of a split by id, in order.
  std::vector<std::pair<std::string, std::string>> decoded(const std::string& run, const std::string& corpus) const {
    const Outcome o = tactus({"decode", path(run), "--corpus", path(corpus), "--data", "test", "--threads", "1"});
    EXPECT_EQ(o.code, 0) << o.err;
    said_ = o.err;
    std::vector<std::pair<std::string, std::string>> lines;
    for (const std::string& line : lines_of(o.out)) {
      const size_t first = line.find('\t'), second = line.rfind('\t');
      EXPECT_NE(first, second) << line;
      lines.emplace_back(line.substr(0, first), line.substr(first + 1, second - first - 1));
    }
    EXPECT_FALSE(lines.empty());
    if (!lines.empty()) lines.erase(lines.begin());
    return lines;
  }
  mutable std::string said_;
};

/// Empty source, empty target, both, only spaces: one output line for each input line, whatever it holds.
TEST_F(FaultsTest, EmptySourcesAndTargetsKeepTheirLines) {
  sound("brief", sine(200, 400, 16000)), sound("none", {});
  const std::string rows = row("full", "3", "one minute") + row("no-target", "4", "") +
                           row("no-source", "5", "two", "") + row("neither", "6", "", "") +
                           row("spaces", "7", "   ", " \f ") + row("brief", "brief", "three") +
                           row("none", "none", "") + row("wide", "8", "\u3000");
  manifest("test", rows);
  std::ofstream(path("m/train.tsv"), std::ios::app) << rows;
  const std::string more = "id-of-train-";
  std::string text = file_text(path("m/train.tsv"));
  for (const char* id : {"full", "no-target", "no-source", "neither", "spaces", "brief", "none", "wide"})
    text.insert(text.find(std::string("\n") + id + "\t") + 1, more);
  write("m/train.tsv", text);
  const Outcome prepared = prepare();
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  for (const char* part : {"train: 15 of 20 items kept", "test: 8 of 8 items kept"})
    EXPECT_TRUE(contains(prepared.out, part)) << part << prepared.out;
  const Outcome trained = train_on("c/corpus.h5", "r");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto lines = decoded("r", "c/corpus.h5");
  ASSERT_EQ(lines.size(), 8u);
  const char* ids[] = {"full", "no-target", "no-source", "neither", "spaces", "brief", "none", "wide"};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(lines[i].first, ids[i]);
  EXPECT_EQ(lines[5].second + lines[6].second, "");
  EXPECT_TRUE(contains(said_, "too short for the encoder, so left empty: 2 utterances")) << said_;
  // All of it kept in training as well: what cannot be trained on is left out and counted, not a crash.
  ASSERT_EQ(prepare({"empty=keep"}, "k").code, 0);
  const Outcome kept = train_on("k/corpus.h5", "rk");
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_TRUE(contains(kept.err, "empty_target")) << kept.err;
  EXPECT_EQ(decoded("rk", "k/corpus.h5").size(), 8u);
}

/// Digital silence and sound without a sample: an empty translation, not invented words.
TEST_F(FaultsTest, SilenceIsNotTranscribedAsWords) {
  sound("silent", std::vector<float>(16000)), sound("frame", std::vector<float>(400));
  sound("none", {}), sound("almost", std::vector<float>(399));
  std::vector<float> click(16000);
  click[8000] = 3000;
  sound("click", click), sound("tone", sine(16000, 450, 16000));
  std::vector<float> chirp;
  for (int i = 0; i < 16000; ++i) chirp.push_back(static_cast<float>(8000 * std::sin(1e-5 * i * i)));
  sound("chirp", chirp);
  std::string rows;
  for (const char* name : {"silent", "frame", "none", "almost", "tone", "chirp", "click"}) rows += row(name, name, "x");
  manifest("test", rows);
  ASSERT_EQ(prepare().code, 0);
  const Outcome trained = train_on("c/corpus.h5", "r", "max_updates: 8");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto lines = decoded("r", "c/corpus.h5");
  ASSERT_EQ(lines.size(), 7u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(lines[i].second, "") << lines[i].first;
  for (size_t i = 5; i < 7; ++i) EXPECT_NE(lines[i].second, "") << lines[i].first << ": a model that says something";
  EXPECT_TRUE(contains(said_, "silent (every frame the same), so left empty: 3 utterances")) << said_;
  EXPECT_TRUE(contains(said_, "too short for the encoder, so left empty: 2 utterances")) << said_;
}

/// A vocabulary of words that mean something to YAML, from a file through preparation, corpus, training and the model
/// file to decoded lines.
TEST_F(FaultsTest, WordsThatMeanSomethingToYaml) {
  const std::vector<std::string> words = {"~",  "null", "yes", "no", ":", "#", "-",   "\"",     "`",
                                          "<<", "[",    "{}",  "|",  ">", "%", "1e3", "\u0085", "\u2028"};
  std::string list, text;
  for (const std::string& w : words) list += w + "\n", text += (text.empty() ? "" : " ") + w;
  std::string train, dev;
  for (int i = 0; i < 12; ++i) train += row("t" + std::to_string(i), std::to_string(i), text, toy_item(i).src_text);
  for (int i = 12; i < 16; ++i) dev += row("d" + std::to_string(i), std::to_string(i), text);
  manifest("train", train), manifest("dev", dev), manifest("test", dev);
  const Outcome prepared = prepare({"target={model: words, file: '" + write("words.txt", list) + "'}"});
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  const Outcome trained = train_on("c/corpus.h5", "r");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string model = CheckpointFolder(path("r")).model_path(3);
  const Tokenizer t = Tokenizer::load({.model = "words", .file = model}, "target");
  EXPECT_EQ(t.decode(t.encode(text)), text);
  EXPECT_EQ(t.hash(), Corpus::open(path("c/corpus.h5")).target_tokenizer().hash());
  EXPECT_EQ(decoded("r", "c/corpus.h5").size(), 4u);
}

/// Unicode line separators are text, at every station.
TEST_F(FaultsTest, OnlyLineFeedsEndLines) {
  const std::string text = "one\u2028two\u2029three\u0085four\x0b\x0c\x1c\x1d\x1e past\rfive";
  manifest("test",
           row("a", "3", text) + row("b", "4", text) + "c\twav/5.wav\tsix\tseven\r\n" + "d\twav/6.wav\tsix\tten");
  ASSERT_EQ(prepare({"target={model: bytes}"}).code, 0);
  const auto test = Corpus::open(path("c/corpus.h5")).split("test");
  ASSERT_EQ(test->size(), 4);
  EXPECT_EQ(test->tgt_text(0), text);
  EXPECT_EQ(test->src_text(2), "seven");
  // A model of bytes can write any byte; its lines stay lines. Enough updates for it to find the byte it sees most.
  ASSERT_EQ(train_on("c/corpus.h5", "r", "max_updates: 3").code, 0);
  EXPECT_EQ(decoded("r", "c/corpus.h5").size(), 4u);
}

/// A model, a checkpoint and a corpus whose tokenizers have the same size and are not the same.
TEST_F(FaultsTest, AnotherTokenizerOfTheSameSizeIsRefused) {
  manifest("test", row("a", "3", "one"));
  ASSERT_EQ(prepare().code, 0);
  ASSERT_EQ(train_on("c/corpus.h5", "r").code, 0);
  const auto other = [&](const std::string& side, const std::string& out) {
    ASSERT_EQ(prepare({side + "={model: bpe, vocab_size: 40}"}, out).code, 0);
    const Corpus a = Corpus::open(path("c/corpus.h5")), b = Corpus::open(path(out + "/corpus.h5"));
    const bool target = side == "target";
    const Tokenizer &x = target ? a.target_tokenizer() : *a.source_tokenizer(),
                    &y = target ? b.target_tokenizer() : *b.source_tokenizer();
    EXPECT_EQ(x.size(), y.size());
    EXPECT_NE(x.hash(), y.hash());
  };
  other("target", "t"), other("source", "s");
  expect_error({"decode", path("r"), "--corpus", path("t/corpus.h5"), "--data", "test"}, 3,
               {"t/corpus.h5", "tokenizer"});
  // Resuming: the lengths of targets may differ, in which case it is the corpus that is named.
  expect_failed(train_on("t/corpus.h5", "r", "max_updates: 4"), 3, {"t/corpus.h5"});
  expect_failed(train_on("s/corpus.h5", "r", "max_updates: 4"), 3, {"s/corpus.h5", "source tokenizer differs"});
  EXPECT_EQ(train_on("c/corpus.h5", "r", "max_updates: 4").code, 0);
}

/// Limits in the wrong unit leave hardly anything: an error that counts, not a run on the rest.
TEST_F(FaultsTest, LimitsInTheWrongUnitAreRefused) {
  manifest("test", row("a", "3", "one"));
  ASSERT_EQ(prepare().code, 0);
  write("run.yaml", config_text(path("c/corpus.h5"), "max_updates: 3"));
  // Seconds where frames are meant.
  expect_error({"train", path("run.yaml"), "--run", path("r"), "--set", "data.batches.max_source_frames=20"}, 3,
               {"max_source_frames", "units"});
  EXPECT_FALSE(fs::exists(path("r/log.jsonl")));
  // Samples or frames where seconds are meant.
  expect_failed(prepare({"min_seconds=40"}, "d"), 3, {"no usable item", "train"});
  expect_failed(prepare({"max_seconds=0.5"}, "d"), 3, {"max_seconds", "more than half"});
  EXPECT_FALSE(fs::exists(path("d/corpus.h5")));
}

/// Names that YAML would turn into numbers and truth values are kept as typed, from the recipe to decoding.
TEST_F(FaultsTest, NamesThatYamlTakesForOtherThings) {
  const std::vector<std::string> names = {"n", "y", "on", "off", "no", "1e3", "0x10", "010", "~", "null"};
  std::string list;
  for (const std::string& name : names) {
    fs::copy_file(path("m/train.tsv"), path("m/" + name + ".tsv"));
    list += (list.empty() ? "" : ", ") + name;
  }
  const Outcome prepared = prepare({"splits=[" + list + "]"});
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  const Corpus corpus = Corpus::open(path("c/corpus.h5"));
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(corpus.split_names(), sorted);
  std::string yaml = config_text(path("c/corpus.h5"), "max_updates: 2");
  yaml.insert(yaml.find("data: {") + 7, "train: n, valid: 0x10, ");
  write("run.yaml", yaml);
  const Outcome trained = tactus({"train", path("run.yaml"), "--run", path("r")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(file_text(path("r/config.yaml")), "train: \"n\"")) << file_text(path("r/config.yaml"));
  for (const char* name : {"010", "~", "1e3", "off"})
    EXPECT_EQ(lines_of(tactus({"decode", path("r"), "--data", name, "--threads", "1"}).out).size(), 13u) << name;
}

/// Formats that decoders read differently are refused by name, instead of giving other features elsewhere.
TEST_F(FaultsTest, CodecsWithManyDecodersAreRefused) {
  SF_INFO info{};
  info.samplerate = 16000, info.channels = 1, info.format = 0x230000 | 0x0082;  // MPEG, layer III
  if (!sf_format_check(&info)) GTEST_SKIP() << "this libsndfile writes no MP3";
  write_sound(path("m/wav/3.wav"), sine(16000, 400, 16000), 16000, 1, info.format);
  manifest("test", row("a", "4", "one"));
  expect_failed(prepare(), 3, {"train.tsv:5", "3.wav", "MP3", "convert it to"});
}

/// Several loader threads that compute frames from sound on the fly give what one gives.
TEST_F(FaultsTest, ThreadsShareNoHandle) {
  manifest("test", row("a", "3", "one"));
  ASSERT_EQ(prepare({"store=on_the_fly"}).code, 0);
  std::vector<std::string> logs;
  for (const char* threads : {"1", "8"}) {
    write("run.yaml", config_text(path("c/corpus.h5"), "max_updates: 12, log_every: 1"));
    const std::string run = path(std::string("r") + threads);
    const Outcome o = tactus({"train", path("run.yaml"), "--run", run, "--set",
                              std::string("data.loader_threads=") + threads, "--set", "data.prefetch=8"});
    ASSERT_EQ(o.code, 0) << o.err;
    logs.push_back(repeatable_log(run));
  }
  EXPECT_EQ(logs[0], logs[1]);
}

TEST(DecodedText, AnyHypothesisIsOneLine) {
  DecodeReport report;
  report.lines = {
      {"a", "one\ttwo\nthree\rfour", -1}, {"b\nc", std::string("x\0y\xff\xc3", 5), 0}, {"d", "e\u2028f", 0}};
  EXPECT_EQ(decoded_text(report),
            "id\thypothesis\tscore\na\tone two three four\t-1.000000\nb c\tx "
            "y\ufffd\ufffd\t0.000000\nd\te\u2028f\t0.000000\n");
}

}  // namespace
}  // namespace tactus
