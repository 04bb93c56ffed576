#include <chrono>
#include <thread>

#include "core/half.h"
#include "data/audio/fbank.h"
#include "data/audio/read_audio.h"
#include "data/prepare.h"
#include "tests/data/audio_test_util.h"

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
    ManifestRow row = toy_row(i);
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
    o.manifests = path("m"), o.output = path(output);
    o.target.vocab_size = 32, o.source.vocab_size = 30;
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
  EXPECT_TRUE(contains(log_, "prepare train: kept 8 utterances"));
  EXPECT_FALSE(contains(log_, "warning"));
  Corpus corpus = Corpus::open(path("c.h5"));
  EXPECT_EQ(corpus.split_names(), (std::vector<std::string>{"dev", "test", "train"}));
  EXPECT_EQ(corpus.target_tokenizer().size(), 32);
  auto dev = corpus.split("dev");
  ASSERT_EQ(dev->size(), 2);
  EXPECT_EQ(dev->id(1), "utt9");
  EXPECT_EQ(dev->tgt_text(1), toy_row(9).tgt_text);
  EXPECT_EQ(std::vector<int32_t>(dev->tgt_tokens(1).begin(), dev->tgt_tokens(1).end()),
            corpus.target_tokenizer().encode(toy_row(9).tgt_text));
  std::vector<float> expected = Fbank({}).compute(read_audio(path("m/wav/9.flac"))), frames(expected.size());
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
  EXPECT_EQ(files(), std::vector<std::string>{"m"});
  o.on_error = "skip";
  std::vector<PreparedSplit> results = run(o);
  EXPECT_EQ(results[0].kept, 5);
  EXPECT_EQ(results[0].dropped, 3);
  EXPECT_TRUE(contains(log_, "dropped 3: 2 bad_audio (first: ")) << log_;
  EXPECT_TRUE(contains(log_, "1 too_short (first: ")) << log_;
  auto train = Corpus::open(path("c.h5")).split("train");
  EXPECT_EQ(train->size(), 5);
  EXPECT_EQ(train->dropped(), 3);
  EXPECT_EQ(train->id(2), "utt3");
}

TEST_F(PrepareTest, AShortUtteranceNamesItsSamples) {
  sound(6, 399);
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(options("c.h5")); }), "399 samples"));
}

TEST_F(PrepareTest, EmptyTranscriptsStopOrAreCounted) {
  write_manifest("train", 0, 7, "bare\twav/7.flac\t10\t \tx\ty\n");
  PrepareOptions o = options("c.h5");
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "train.tsv:9 (id bare): empty transcript"));
  o.on_error = "skip";
  EXPECT_EQ(run(o)[0].dropped, 1);
}

TEST_F(PrepareTest, FramesInOtherUnitsAreWarnedOf) {
  write_manifest("train", 0, 7, "samples\twav/7.flac\t7900\tten minutes\tone\ty\n");
  run(options("c.h5"));
  EXPECT_TRUE(contains(log_, "1 utterances of train have another n_frames")) << log_;
  EXPECT_TRUE(contains(log_, "says 7900, audio has 47")) << log_;
}

TEST_F(PrepareTest, OptionsAndManifestsAreChecked) {
  PrepareOptions o = options("c.h5");
  o.splits = {"train", "other"};
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "other.tsv"));
  write("m/other.tsv", "id\taudio\tn_frames\ttgt_text\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "'src_text' is missing"));
  o.source.vocab_size = 0;
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "no usable utterance"));
  o.splits = {};
  EXPECT_THROW(run(o), ConfigError);
  o = options("c.h5");
  o.on_error = "shrug";
  EXPECT_THROW(run(o), ConfigError);
  o = options("c.h5");
  o.target.vocab_size = 5000;
  EXPECT_TRUE(contains(message_of<DataError>([&] { run(o); }), "train.tsv (tgt_text): cannot train"));
  EXPECT_EQ(files(), std::vector<std::string>{"m"});
  o = options("no/such/folder/c.h5");
  EXPECT_TRUE(contains(message_of<Error>([&] { run(o); }), "No such file"));
}

TEST_F(PrepareTest, ReadsItsOptionsFromYaml) {
  PrepareOptions o;
  Config::from_text(
      "manifests: a\noutput: b.h5\nfeatures: {window: hamming}\ntarget: {vocab_size: 500}\non_error: skip\n")
      .read(o);
  EXPECT_EQ(o.features.window, "hamming");
  EXPECT_EQ(o.target.vocab_size, 500);
  EXPECT_EQ(o.source.vocab_size, 0);
  EXPECT_THROW(Config::from_text("manifests: a\noutput: b\non_error: maybe\n").read(o), ConfigError);
}

}  // namespace
}  // namespace tactus
