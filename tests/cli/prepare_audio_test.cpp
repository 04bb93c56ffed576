// `tactus prepare` from manifests and sound files, and what is wrong with them.
#include "tests/cli/cli_test_util.h"
#include "tests/data/audio/audio_test_util.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

class PrepareCliTest : public CliTest {
 protected:
  static constexpr int kUtterances = 24;
  void SetUp() override {
    CliTest::SetUp();
    fs::create_directories(path("m/wav"));
    for (int i = 0; i < kUtterances; ++i) {
      write_sound(path("m/wav/" + std::to_string(i) + ".flac"), sine(6000 + 500 * i, 300 + 50 * i, 16000), 16000, 1,
                  SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
    }
    write_manifest("train", 0, 16), write_manifest("dev", 16, 20), write_manifest("test", 20, kUtterances);
    write("recipe.yaml", "input: {path: '" + path("m") +
                             "'}\nfeatures: {mel_bins: 8}\ntarget: {vocab_size: 40}\n"
                             "source: {model: unigram, vocab_size: 40}\n");
  }
  void write_manifest(const std::string& split, int begin, int end, const std::string& header = "tgt_text",
                      const std::string& more = "") {
    std::string text = "id\taudio\tn_frames\t" + header + "\tsrc_text\n";
    for (int i = begin; i < end; ++i) {
      const Item row = toy_item(i);
      text += row.id + "\twav/" + std::to_string(i) + ".flac\t" + std::to_string((6000 + 500 * i - 240) / 160) + "\t" +
              row.tgt_text + "\t" + row.src_text + "\n";
    }
    write("m/" + split + ".tsv", text + more);
  }
  std::vector<std::string> command() const { return {"prepare", path("recipe.yaml"), "--out", path("c")}; }
  /// Nothing of a failed or killed preparation may look like a corpus.
  void expect_nothing_made() const { EXPECT_FALSE(fs::exists(path("c/corpus.h5"))); }
};

TEST_F(PrepareCliTest, FromAudioToDecodedText) {
  const Outcome o = tactus(command());
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* part : {"train: 16 of 16 items kept", "dev: 4 of 4 items kept", "test: 4", "c/corpus.h5"})
    EXPECT_TRUE(contains(o.out, part)) << part << ": " << o.out;
  EXPECT_EQ(leftovers(path("c")), std::vector<std::string>{});
  write("run.yaml", config_text(path("c/corpus.h5"), "max_updates: 4"));
  ASSERT_EQ(tactus({"train", path("run.yaml"), "--run", path("r")}).code, 0);
  const Outcome decoded = tactus({"decode", path("r"), "--data", "test", "--threads", "1"});
  EXPECT_EQ(decoded.code, 0) << decoded.err;
  EXPECT_EQ(lines_of(decoded.out).size(), 5u);
}

TEST_F(PrepareCliTest, BadManifests) {
  write_manifest("dev", 16, 20, "target");
  expect_error(command(), 3, {"dev.tsv:1", "tgt_text"});
  write_manifest("dev", 16, 20, "tgt_text", "few\twav/3.flac\n");
  expect_error(command(), 3, {"dev.tsv:6"});
  fs::remove(path("m/dev.tsv"));
  expect_error(command(), 3, {"dev.tsv"});
  write_manifest("dev", 16, 20);
  std::vector<std::string> wrong = command();
  wrong.insert(wrong.end(), {"--set", "target.vocabsize=30"});
  expect_error(wrong, 2, {"vocabsize", "vocab_size"});
  wrong.back() = "target.vocab_size=100000";
  expect_error(wrong, 3, {"100000", "tgt_text"});
  expect_error({"prepare", path("none.yaml"), "--out", path("c")}, 2, {"none.yaml"});
  expect_nothing_made();
}

TEST_F(PrepareCliTest, BadAudio) {
  const std::string sound = path("m/wav/5.flac"), good = file_text(sound);
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), good.substr(0, 20), std::string("no sound"), std::string()}) {
    write("m/wav/5.flac", bad);
    expect_error(command(), 3, {"train.tsv:7", "utt5", "5.flac"});
  }
  std::string flipped = good;
  for (size_t i = flipped.size() / 3; i < flipped.size() / 3 + 40; ++i) flipped[i] = static_cast<char>(~flipped[i]);
  write("m/wav/5.flac", flipped);
  expect_error(command(), 3, {"train.tsv:7", "5.flac"});
  fs::remove(sound);
  expect_error(command(), 3, {"train.tsv:7", "5.flac"});
  write_sound(path("m/wav/5.ogg"), sine(9000, 400, 16000), 16000, 1, SF_FORMAT_OGG | SF_FORMAT_VORBIS);
  fs::copy_file(path("m/wav/5.ogg"), sound);
  EXPECT_EQ(tactus(command()).code, 0) << "the content counts, not the name";
  fs::remove(path("c/corpus.h5"));
  const std::string ogg = file_text(sound);
  write("m/wav/5.flac", ogg.substr(0, ogg.size() / 3));
  expect_error(command(), 3, {"train.tsv:7", "5.flac"});
  expect_nothing_made();
  std::vector<std::string> skip = command();
  skip.insert(skip.end(), {"--set", "on_error=skip"});
  const Outcome o = tactus(skip);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "15 of 16 items kept") && contains(o.out, "1 dropped: 1 bad_audio (utt5; first: "))
      << o.out;
}

TEST_F(PrepareCliTest, KilledAndStartedAgain) {
  ASSERT_EQ(tactus(command()).code, 0);
  const std::string whole = file_text(path("c/corpus.h5"));
  fs::remove_all(path("c"));
  for (int i = 0; i < 4; ++i) {
    Process child(folder_.string(), command());
    ASSERT_TRUE(child.wait_for([&] { return fs::exists(path("c/corpus.h5.tmp")); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(2 * i));
    child.send(SIGKILL);
    if (!child.wait().killed) break;
    expect_nothing_made();
  }
  const Outcome o = tactus(command());
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(leftovers(path("c")), std::vector<std::string>{});
  EXPECT_TRUE(file_text(path("c/corpus.h5")) == whole) << "the same bytes as without a kill";
}

TEST_F(PrepareCliTest, FullDisk) {
  const Outcome o = Process(folder_.string(), command(), 8000).wait();
  expect_failed(o, 1, {"c/corpus.h5", "File too large"});
  expect_nothing_made();
}

}  // namespace
}  // namespace tactus
