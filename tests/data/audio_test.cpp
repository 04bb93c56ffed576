#include <sndfile.h>

#include <cmath>
#include <numbers>

#include "core/h5.h"
#include "data/audio/fbank.h"
#include "data/audio/read_audio.h"
#include "tests/data/audio_test_util.h"

namespace tactus {
namespace {

class AudioTest : public FolderTest {
 protected:
  std::string error(const std::string& file) {
    std::string message = message_of<DataError>([&] { read_audio(file); });
    EXPECT_TRUE(contains(message, file)) << message;
    return message;
  }
  std::string cut(const std::string& name, double share) {
    std::string bytes = read_text_file(path(name));
    return write("cut_" + name, bytes.substr(0, static_cast<size_t>(static_cast<double>(bytes.size()) * share)));
  }
};

TEST_F(AudioTest, IntegerFormatsAreExact) {
  std::vector<float> samples = sine(5000, 440, 16000);
  for (auto& x : samples) x = std::round(x);
  for (auto [name, format] : {std::pair{"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                              {"a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
                              {"b.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT}}) {
    write_sound(path(name), samples, 16000, 1, format);
    EXPECT_EQ(read_audio(path(name)), samples) << name;
  }
}

TEST_F(AudioTest, LossyFormatsKeepLengthAndLevel) {
  std::vector<float> samples = sine(16000, 440, 16000);
  for (auto [name, format] :
       {std::pair{"a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS}, {"a.opus", SF_FORMAT_OGG | SF_FORMAT_OPUS}}) {
    write_sound(path(name), samples, 16000, 1, format);
    std::vector<float> read = read_audio(path(name));
    EXPECT_NEAR(static_cast<double>(read.size()), 16000, 10);
    double energy = 0;
    for (float x : read) energy += static_cast<double>(x) * x / static_cast<double>(read.size());
    EXPECT_NEAR(std::sqrt(energy), 8000 / std::numbers::sqrt2, 300) << name;
  }
}

TEST_F(AudioTest, ChannelsAreAveraged) {
  std::vector<float> stereo, expected;
  for (int i = 0; i < 1000; ++i) {
    stereo.push_back(static_cast<float>(i)), stereo.push_back(static_cast<float>(-3 * i));
    expected.push_back(static_cast<float>(-i));
  }
  write_sound(path("s.wav"), stereo, 16000, 2, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  EXPECT_EQ(read_audio(path("s.wav")), expected);
}

TEST_F(AudioTest, OtherRatesAreResampledWithoutAliasing) {
  for (int rate : {8000, 11025, 22050, 44100, 48000}) {
    write_sound(path("r.wav"), sine(rate, 1000, rate), rate, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
    std::vector<float> read = read_audio(path("r.wav")), expected = sine(16000, 1000, 16000);
    ASSERT_NEAR(static_cast<double>(read.size()), 16000, 2) << rate;
    for (int i = 2000; i < 14000; ++i) ASSERT_NEAR(read[i], expected[i], 20) << rate << " " << i;
  }
  // 12 kHz lies above the new Nyquist frequency and must vanish instead of folding to 4 kHz.
  write_sound(path("r.wav"), sine(48000, 12000, 48000), 48000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  std::vector<float> read = read_audio(path("r.wav"));
  for (int i = 2000; i < 14000; ++i) ASSERT_NEAR(read[i], 0, 2);
}

TEST_F(AudioTest, CutFilesAreErrors) {
  // Noise, so that a compressed file spreads evenly over its samples.
  Rng rng(4);
  std::vector<float> samples(40000);
  for (float& x : samples) x = static_cast<float>(3000 * rng.normal());
  write_sound(path("a.wav"), samples, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  write_sound(path("a.flac"), samples, 16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  write_sound(path("a.ogg"), samples, 16000, 1, SF_FORMAT_OGG | SF_FORMAT_VORBIS);
  write_sound(path("a.opus"), samples, 16000, 1, SF_FORMAT_OGG | SF_FORMAT_OPUS);
  for (const char* name : {"a.wav", "a.flac", "a.ogg", "a.opus"}) {
    EXPECT_GT(read_audio(path(name)).size(), 39000u);
    for (double share : {0.0, 0.0002, 0.1, 0.5, 0.9}) error(cut(name, share));
  }
  EXPECT_TRUE(contains(error(cut("a.wav", 0.5)), "cut short: the header promises 80000 bytes"));
}

TEST_F(AudioTest, DamagedAndForeignFilesAreErrors) {
  write_sound(path("a.flac"), sine(40000, 440, 16000), 16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  std::string bytes = read_text_file(path("a.flac"));
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 600; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);
  error(write("damaged.flac", bytes));
  error(write("text.flac", "no sound at all, but long enough to be looked at as a file"));
  EXPECT_TRUE(contains(error(path("absent.flac")), "No such file"));
  error(folder_.string());
  write_sound(path("none.wav"), {}, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  EXPECT_TRUE(read_audio(path("none.wav")).empty()) << "nothing is wrong with the file";
  write_sound(path("nan.wav"), {1, NAN, 2}, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
  EXPECT_TRUE(contains(error(path("nan.wav")), "not a finite number"));
}

class FbankTest : public testing::Test {
 protected:
  void SetUp() override {
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
}

}  // namespace
}  // namespace tactus
