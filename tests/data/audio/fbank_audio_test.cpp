// Filter banks against Kaldi's numbers: on synthetic sound in every frame, and on human speech.
#include <cmath>
#include <thread>

#include "core/files/h5.h"
#include "data/audio/fbank.h"
#include "data/audio/read_audio.h"
#include "tests/data/audio/audio_test_util.h"

namespace tactus {
namespace {

class FbankTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    h5::File f = h5::File::open(std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/features.h5");
    wave_ = f.read<float>("wave");
    povey_ = f.read<double>("povey"), hamming_ = f.read<double>("hamming"), mel_ = f.read<double>("mel_weights");
  }
  std::vector<float> wave_;
  std::vector<double> povey_, hamming_, mel_;
};

TEST_F(FbankTest, MatchesKaldi) {
  for (auto& [window, expected] : {std::pair{"povey", povey_}, {"hamming", hamming_}}) {
    std::vector<float> features = Fbank({.window = window}).compute(wave_);
    ASSERT_EQ(features.size(), expected.size());
    for (size_t i = 0; i < features.size(); ++i) ASSERT_NEAR(features[i], expected[i], 3e-4) << window;
  }
  const std::vector<double> mel = Fbank({}).mel_weights();
  ASSERT_EQ(mel.size(), mel_.size());
  for (size_t i = 0; i < mel.size(); ++i) ASSERT_NEAR(mel[i], mel_[i], 1e-4);
}

/// fixtures/speech/NOTICE says whose recordings these are, make_features.py how the numbers were made. The whole way is
/// compared, from the file on, so that a decoder that drifts would be seen too.
TEST_F(FbankTest, MatchesKaldiOnSpeech) {
  const std::string folder = std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/speech/";
  const h5::File f = h5::File::open(folder + "features.h5");
  constexpr int64_t kEvery = 10;
  for (const auto& [recording, frames] : {std::pair<std::string, int64_t>{"librivox_0880", 297}, {"cards_002", 194}}) {
    const std::vector<float> wave = read_audio(folder + recording + ".flac");
    for (const auto& [name, options] : {std::pair<std::string, FeatureOptions>{"povey80", {}},
                                        {"hamming80", {.window = "hamming"}},
                                        {"povey40", {.mel_bins = 40, .low_hz = 60, .high_hz = 7600}},
                                        {"hamming23", {.window = "hamming", .mel_bins = 23, .high_hz = 4000}}}) {
      const std::vector<float> features = Fbank(options).compute(wave);
      const std::vector<double> expected = f.read<double>(recording + "/" + name);
      const auto bins = static_cast<size_t>(options.mel_bins);
      ASSERT_EQ(features.size(), static_cast<size_t>(frames) * bins);
      ASSERT_EQ(expected.size(), static_cast<size_t>((frames + kEvery - 1) / kEvery) * bins);
      for (size_t i = 0; i < expected.size(); ++i) {
        const size_t row = i / bins, bin = i % bins;
        ASSERT_NEAR(features[row * kEvery * bins + bin], expected[i], 1e-3) << recording << " " << name << " " << row;
      }
    }
  }
}

TEST_F(FbankTest, WholeFramesOnly) {
  Fbank fbank({});
  for (auto [samples, frames] : {std::pair<size_t, size_t>{0, 0}, {399, 0}, {400, 1}, {559, 1}, {560, 2}, {5600, 33}}) {
    EXPECT_EQ(fbank.compute(std::span(wave_).first(samples)).size(), frames * 80);
    EXPECT_EQ(static_cast<size_t>(Fbank::frames(static_cast<int64_t>(samples))), frames);
  }
}

TEST_F(FbankTest, FramesKnowNoNeighboursAndSilenceHasAFloor) {
  Fbank fbank({});
  std::vector<float> all = fbank.compute(wave_), part = fbank.compute(std::span(wave_).subspan(320, 400));
  for (int b = 0; b < 80; ++b) EXPECT_EQ(part[b], all[2 * 80 + b]);
  for (float x : fbank.compute(std::vector<float>(400, 17.0f))) EXPECT_NEAR(x, std::log(1.1920929e-07), 1e-5);
}

TEST_F(FbankTest, OptionsAreChecked) {
  EXPECT_THROW(Fbank({.window = "hann"}), ConfigError);
  EXPECT_THROW(Fbank({.low_hz = 4000, .high_hz = 300}), ConfigError);
  EXPECT_THROW(Fbank({.high_hz = 9000}), ConfigError);
  EXPECT_TRUE(contains(message_of<ConfigError>([] { Fbank({.mel_bins = 128}); }), "is 128, too many: filter "));
}

/// Silence, digital or constant, gives the floor and nothing that is not finite.
TEST_F(FbankTest, SilenceIsFinite) {
  write_sound(path("zeros.wav"), std::vector<float>(4000), 16000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  write_sound(path("none.wav"), {}, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  for (const char* window : {"povey", "hamming"}) {
    const Fbank fbank({.window = window});
    const std::vector<float> features = fbank.compute(read_audio(path("zeros.wav")));
    ASSERT_EQ(features.size(), 23u * 80);
    for (float x : features) ASSERT_EQ(x, std::log(1.1920929e-07f));
    EXPECT_TRUE(fbank.compute(read_audio(path("none.wav"))).empty());
  }
}

TEST_F(FbankTest, LoudestSoundIsFinite) {
  std::vector<float> square;
  for (int i = 0; i < 4000; ++i) square.push_back(i / 8 % 2 == 0 ? 32767.0f : -32768.0f);
  for (float x : Fbank({}).compute(square)) ASSERT_TRUE(std::isfinite(x) && x < 35) << x;
}

/// One object serves many threads, each with its own utterance.
TEST_F(FbankTest, ThreadsShareAnObject) {
  const Fbank fbank({.dither = 1});
  const std::vector<float> expected = fbank.compute(wave_, 5);
  std::vector<std::vector<float>> results(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) fbank.compute(std::span(wave_).first(1000 + 100 * t), static_cast<uint64_t>(i));
      results[t] = fbank.compute(wave_, 5);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& result : results) EXPECT_TRUE(result == expected);
}

/// The noise belongs to key and sample: off by default, the same again, other for another key, and of the right size.
TEST_F(FbankTest, DitherIsKeyed) {
  const std::vector<float> silence(16000);
  const Fbank quiet({}), fbank({.dither = 1}), louder({.dither = 10});
  EXPECT_EQ(quiet.compute(wave_, 1), quiet.compute(wave_, 2));
  const std::vector<float> one = fbank.compute(silence, 1), two = fbank.compute(silence, 2);
  EXPECT_EQ(one, fbank.compute(silence, 1));
  EXPECT_NE(one, two);
  const std::vector<float> begin = fbank.compute(std::span(silence).first(4000), 1);
  EXPECT_TRUE(std::equal(begin.begin(), begin.end(), one.begin())) << "what follows does not matter";
  const std::vector<float> loud = louder.compute(silence, 1);
  double shift = 0;
  for (size_t i = 0; i < one.size(); ++i) shift += (loud[i] - one[i]) / static_cast<double>(one.size());
  EXPECT_NEAR(shift, 2 * std::log(10), 1e-3);
  // White noise of variance 1 after the window and pre-emphasis: the mean over frames of a filter's energy.
  double energy = 0;
  const std::vector<double>& mel = fbank.mel_weights();
  for (size_t row = 0; row < 98; ++row) energy += std::exp(static_cast<double>(one[row * 80 + 60])) / 98;
  double expected = 0;
  for (int k = 0; k < 256; ++k) {
    const double gain = 1 + 0.97 * 0.97 - 2 * 0.97 * std::cos(std::numbers::pi * k / 256);
    expected += mel[60 * 256 + k] * gain;
  }
  double window = 0;
  for (int i = 0; i < 400; ++i) window += std::pow(0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / 399), 1.7);
  EXPECT_NEAR(energy / (expected * window), 1, 0.15);
}

}  // namespace
}  // namespace tactus
