#include <chrono>
#include <thread>

#include "core/half.h"
#include "data/audio/fbank.h"
#include "data/audio/read_audio.h"
#include "data/prepare/prepare.h"
#include "tests/data/audio/audio_test_util.h"

namespace tactus {
namespace {

class PrepareTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    std::filesystem::create_directories(path("m/wav"));
    for (int i = 0; i < 12; ++i) sound(i, 3000 + 700 * i);
    write_manifest("train", 0, 8), write_manifest("dev", 8, 10), write_manifest("test", 10, 12);
  }
  void sound(int i, int64_t samples) {
    write_sound(path("m/wav/" + std::to_string(i) + ".flac"), sine(samples, 300 + 50 * i, 16000), 16000, 1,
                SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  }
  static std::string line(int i) {
    Item row = toy_item(i);
    return row.id + "\twav/" + std::to_string(i) + ".flac\t" + std::to_string(Fbank::frames(3000 + 700 * i)) + "\t" +
           row.tgt_text + "\t" + row.src_text + "\t" + row.speaker + "\n";
  }
  void write_manifest(const std::string& split, int begin, int end, const std::string& more = "") {
    std::string text = "id\taudio\tn_frames\ttgt_text\tsrc_text\tspeaker\n";
    for (int i = begin; i < end; ++i) text += line(i);
    write("m/" + split + ".tsv", text + more);
  }
  PrepareOptions options(const std::string& output) {
    PrepareOptions o;
    o.input.path = path("m"), o.output = path(output);
    o.target.vocab_size = 32;
    o.source.model = "unigram", o.source.vocab_size = 30;
    o.threads = 2;
    return o;
  }
  /// Runs prepare without its progress lines.
  std::vector<PreparedSplit> run(const PrepareOptions& o) {
    testing::internal::CaptureStderr();
    try {
      auto results = prepare(o);
      log_ = testing::internal::GetCapturedStderr();
      return results;
    } catch (...) {
      log_ = testing::internal::GetCapturedStderr();
      throw;
    }
  }
  std::string log_;
};

TEST_F(PrepareTest, FeaturesTextsAndTokensArrive) {
  std::vector<PreparedSplit> results = run(options("c.h5"));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].kept, 8);
  EXPECT_TRUE(contains(log_, "prepare train: 8 of 8 items kept"));
  EXPECT_FALSE(contains(log_, "n_frames"));
  Corpus corpus = Corpus::open(path("c.h5"));
  EXPECT_EQ(corpus.split_names(), (std::vector<std::string>{"dev", "test", "train"}));
  EXPECT_EQ(corpus.target_tokenizer().size(), 32);
  auto dev = corpus.split("dev");
  ASSERT_EQ(dev->size(), 2);
  EXPECT_EQ(dev->id(1), "utt9");
  EXPECT_EQ(dev->tgt_text(1), toy_item(9).tgt_text);
  EXPECT_EQ(dev->tgt_tokens()[1], corpus.target_tokenizer().encode(toy_item(9).tgt_text));
  std::vector<float> expected = Fbank({}).compute(read_audio(path("m/wav/9.flac")), 0), frames(expected.size());
  ASSERT_EQ(dev->frames(1) * 80, static_cast<int64_t>(expected.size()));
  dev->read_frames(1, frames.data());
  for (size_t k = 0; k < frames.size(); ++k) ASSERT_EQ(frames[k], float_from_half(half_from_float(expected[k])));
}

TEST_F(PrepareTest, TheFileDoesNotDependOnThreads) {
  PrepareOptions one = options("one.h5"), five = options("five.h5");
  one.threads = 1, five.threads = 5;
  run(one);
  // Files must not hold the time of day either.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  run(five);
  EXPECT_TRUE(read_text_file(path("one.h5")) == read_text_file(path("five.h5")));
}

TEST_F(PrepareTest, BadAudioStopsOrIsDroppedAndCounted) {
  write("m/wav/2.flac", read_text_file(path("m/wav/2.flac")).substr(0, 900));
  std::filesystem::remove(path("m/wav/5.flac"));
  sound(6, 399);
  PrepareOptions o = options("c.h5");
  std::string message = message_of<DataError>([&] { run(o); });
  EXPECT_TRUE(contains(message, path("m/train.tsv") + ":4 (id utt2): ")) << message;
  EXPECT_TRUE(contains(message, path("m/wav/2.flac"))) << message;
  EXPECT_FALSE(std::filesystem::exists(path("c.h5")));
  o.on_error = "skip";
  std::vector<PreparedSplit> results = run(o);
  EXPECT_EQ(results[0].kept, 5);
  EXPECT_EQ(total(results[0].dropped), 3);
  EXPECT_TRUE(contains(log_, "3 dropped: 2 bad_audio (utt2, utt5; first: ")) << log_;
  EXPECT_TRUE(contains(log_, "1 too_short (utt6; first: ")) << log_;
  auto train = Corpus::open(path("c.h5")).split("train");
  EXPECT_EQ(train->size(), 5);
  EXPECT_EQ(train->dropped(), 3);
  EXPECT_EQ(train->id(2), "utt3");
}

/// Blank text and audio without a frame: dropped from training, kept elsewhere, so that every line gets an answer.
TEST_F(PrepareTest, EmptyItemsByPolicy) {
  write_manifest("train", 0, 7, "bare\twav/7.flac\t10\t \tx\ty\n");
  write_manifest("dev", 8, 10, "blank\twav/7.flac\t53\t\t\ty\nbrief\twav/11.flac\t0\tone minute\tone\ty\n");
  sound(6, 399), sound(11, 200);
  PrepareOptions o = options("c.h5");
  o.source.vocab_size = 34;
  std::vector<PreparedSplit> results = run(o);
  EXPECT_EQ(to_string(results[0].dropped).substr(0, 19), "1 empty_text (bare;");
  EXPECT_EQ(results[0].dropped.at("too_short").ids, std::vector<std::string>{"utt6"});
  EXPECT_TRUE(results[1].dropped.empty());
  auto dev = Corpus::open(path("c.h5")).split("dev");
  ASSERT_EQ(dev->size(), 4);
  EXPECT_EQ(dev->tgt_tokens().length(2), 0);
  EXPECT_EQ(dev->frames(3), 0);
  o.empty = "stop";
  std::string message = message_of<DataError>([&] { run(o); });
  EXPECT_TRUE(contains(message, "train.tsv:9 (id bare): empty text") || contains(message, "(id utt6)")) << message;
  o.empty = "drop";
  results = run(o);
  EXPECT_EQ(total(results[1].dropped), 2);
  o.empty = "keep";
  EXPECT_EQ(run(o)[0].kept, 8);
}

/// Finished parts are used again, unless the recipe or the data have changed since; the result has the same bytes.
TEST_F(PrepareTest, GoesOnFromFinishedParts) {
  const PrepareOptions o = options("c.h5");
  run(o);
  const std::string whole = read_text_file(path("c.h5"));
  std::filesystem::remove(path("c.h5"));
  // The last split stops the work, so that the parts of the first two stay.
  write("m/test.tsv",
        "id\taudio\tn_frames\ttgt_text\tsrc_text\tspeaker\n" + line(10) + "x\twav/none.flac\t9\tone minute\tone\ty\n");
  EXPECT_THROW(run(o), DataError);
  EXPECT_FALSE(std::filesystem::exists(path("c.h5")));
  EXPECT_TRUE(std::filesystem::exists(path("c.h5.parts")));
  write_manifest("test", 10, 12);
  std::vector<PreparedSplit> results = run(o);
  EXPECT_EQ(results[0].reused, 8);
  EXPECT_EQ(results[1].reused, 2);
  EXPECT_EQ(results[2].reused, 0);
  EXPECT_TRUE(read_text_file(path("c.h5")) == whole);
  EXPECT_FALSE(std::filesystem::exists(path("c.h5.parts"))) << "a complete corpus needs no parts";

  write("m/test.tsv", "id\taudio\tn_frames\ttgt_text\tsrc_text\tspeaker\nx\twav/none.flac\t9\tone minute\tone\ty\n");
  EXPECT_THROW(run(o), DataError);
  write_manifest("test", 10, 12);
  sound(3, 9000);
  PrepareOptions hamming = o;
  hamming.features.window = "hamming";
  results = run(hamming);
  EXPECT_EQ(results[0].reused + results[1].reused, 0) << "another recipe";
  EXPECT_EQ(Corpus::open(path("c.h5")).split("train")->frames(3), Fbank::frames(9000)) << "the audio was replaced";
}

TEST_F(PrepareTest, ADamagedPartIsMadeAgain) {
  const PrepareOptions o = options("c.h5");
  run(o);
  const std::string whole = read_text_file(path("c.h5"));
  write("m/test.tsv", "id\taudio\tn_frames\ttgt_text\tsrc_text\tspeaker\nx\twav/none.flac\t9\tone minute\tone\ty\n");
  EXPECT_THROW(run(o), DataError);
  write_manifest("test", 10, 12);
  const std::string part = read_text_file(path("c.h5.parts/train-000000"));
  for (size_t bytes : {size_t{0}, size_t{7}, size_t{60}, part.size() - 1}) {
    std::filesystem::create_directories(path("c.h5.parts"));
    write("c.h5.parts/train-000000", part.substr(0, bytes));
    EXPECT_EQ(run(o)[0].reused, 0);
    EXPECT_TRUE(read_text_file(path("c.h5")) == whole);
  }
}

TEST_F(PrepareTest, SpeedsCopyTheTrainingSplit) {
  PrepareOptions o = options("c.h5");
  o.speeds = {0.9, 1.0, 1.1};
  run(o);
  Corpus corpus = Corpus::open(path("c.h5"));
  auto train = corpus.split("train");
  ASSERT_EQ(train->size(), 24);
  EXPECT_EQ(corpus.split("dev")->size(), 2);
  EXPECT_EQ(train->id(0), "sp0.9-utt0");
  EXPECT_EQ(train->id(1), "utt0");
  EXPECT_EQ(train->id(2), "sp1.1-utt0");
  for (int64_t i = 0; i < 8; ++i) {
    const auto samples = static_cast<double>(3000 + 700 * i);
    EXPECT_NEAR(train->frames(3 * i), Fbank::frames(static_cast<int64_t>(samples / 0.9)), 1);
    EXPECT_EQ(train->frames(3 * i + 1), Fbank::frames(3000 + 700 * i));
    EXPECT_NEAR(train->frames(3 * i + 2), Fbank::frames(static_cast<int64_t>(samples / 1.1)), 1);
  }
  EXPECT_FALSE(contains(log_, "n_frames")) << log_;
  o.speeds = {9.0};
  EXPECT_THROW(run(o), ConfigError);
}

TEST_F(PrepareTest, DurationLimitsHoldForTheFirstSplit) {
  PrepareOptions o = options("c.h5");
  o.min_seconds = 0.2, o.max_seconds = 0.45;
  const std::vector<PreparedSplit> results = run(o);
  EXPECT_EQ(results[0].dropped.at("min_seconds").ids, (std::vector<std::string>{"utt0"}));
  EXPECT_EQ(results[0].dropped.at("max_seconds").count, 1);
  EXPECT_EQ(results[2].kept, 2);
}

/// The corpus refers to the audio; what is read is what a stored corpus holds.
TEST_F(PrepareTest, FramesOnTheFly) {
  PrepareOptions o = options("stored.h5");
  o.store = "f32";
  run(o);
  o.output = path("fly.h5"), o.store = "on_the_fly";
  run(o);
  auto stored = Corpus::open(path("stored.h5")).split("train"), fly = Corpus::open(path("fly.h5")).split("train");
  EXPECT_TRUE(fly->computes_frames());
  EXPECT_EQ(stored->fingerprint(), fly->fingerprint());
  for (int64_t i = 0; i < 8; ++i) {
    std::vector<float> a(static_cast<size_t>(stored->frames(i) * 80)), b(a.size());
    stored->read_frames(i, a.data());
    fly->read_frames(i, b.data());
    EXPECT_TRUE(a == b) << i;
  }
  EXPECT_EQ(stored->moments().sum, fly->moments().sum);
  sound(2, 9999);
  std::vector<float> out(static_cast<size_t>(fly->frames(2) * 80));
  const std::string message = message_of<DataError>([&] { fly->read_frames(2, out.data()); });
  EXPECT_TRUE(contains(message, "utt2") && contains(message, "2.flac now has")) << message;
}

/// A tokenizer that does not fit the text is found by its unknown tokens.
TEST_F(PrepareTest, UnknownTokensAreCountedAndBounded) {
  write_manifest("dev", 8, 10, "greek\twav/7.flac\t47\t\xce\xb1\xce\xb2\xce\xb3 \xce\xb4\tone\ty\n");
  PrepareOptions o = options("c.h5");
  o.target.max_unk_rate = 0.5;
  const std::vector<PreparedSplit> results = run(o);
  EXPECT_GT(results[1].unknown_tokens, 0);
  EXPECT_TRUE(contains(log_, "target tokens of dev are unknown") && contains(log_, "greek")) << log_;
  EXPECT_EQ(Corpus::open(path("c.h5")).split("dev")->unknown_tokens(), results[1].unknown_tokens);
  o.target.max_unk_rate = 0.001;
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "max_unk_rate"));
}

TEST_F(PrepareTest, FramesInOtherUnitsAreWarnedOf) {
  write_manifest("train", 0, 7, "samples\twav/7.flac\t7900\tten minutes\tone\ty\n");
  run(options("c.h5"));
  EXPECT_TRUE(contains(log_, "1 items of train have another n_frames")) << log_;
  EXPECT_TRUE(contains(log_, "says 7900, audio has 47")) << log_;
}

TEST_F(PrepareTest, OptionsAndManifestsAreChecked) {
  PrepareOptions o = options("c.h5");
  o.splits = {"train", "other"};
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "other.tsv"));
  write("m/other.tsv", "id\taudio\tn_frames\ttgt_text\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "'src_text' is missing"));
  o.source.model = "none";
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "no usable item"));
  o.splits = {};
  EXPECT_THROW(run(o), ConfigError);
  o.splits = {"train", "dev", "train"};
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { run(o); }), "'train' is given twice"));
  o.splits = {"train", "tokenizer"};
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { run(o); }), "'tokenizer' cannot be the name"));
  o = options("c.h5");
  o.on_error = "shrug";
  EXPECT_THROW(run(o), ConfigError);
  o = options("c.h5");
  o.target.vocab_size = 5000;
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "split train (tgt_text): cannot train"));
  EXPECT_FALSE(std::filesystem::exists(path("c.h5")));
  o = options("no/such/folder/c.h5");
  EXPECT_TRUE(contains(message_of<Error>([&] { run(o); }), "No such file"));
}

TEST_F(PrepareTest, ReadsItsOptionsFromYaml) {
  PrepareOptions o;
  Config::from_text(
      "input: {path: a}\noutput: b.h5\nfeatures: {window: hamming}\ntarget: {vocab_size: 500}\non_error: skip\n")
      .read(o);
  EXPECT_EQ(o.features.window, "hamming");
  EXPECT_EQ(o.target.vocab_size, 500);
  EXPECT_FALSE(o.source.enabled());
  EXPECT_THROW(Config::from_text("input: {path: a}\noutput: b\non_error: maybe\n").read(o), ConfigError);
}

}  // namespace
}  // namespace tactus
