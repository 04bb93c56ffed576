// Parts of recordings: byte ranges, seconds, speeds.
#include <cmath>
#include <fstream>
#include <map>
#include <numbers>
#include <span>

#include "data/audio/read_audio.h"
#include "tests/data/audio/audio_test_util.h"

namespace tactus {
namespace {

constexpr int kWav = SF_FORMAT_WAV | SF_FORMAT_PCM_16, kFlac = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
constexpr int kVorbis = SF_FORMAT_OGG | SF_FORMAT_VORBIS, kOpus = SF_FORMAT_OGG | SF_FORMAT_OPUS;

class AudioPartTest : public FolderTest {
 protected:
  static std::string error(const MediaRef& media) {
    return message_of<DataError>([&] { read_audio(media); });
  }
  /// Bytes this process has read so far.
  static int64_t bytes_read() {
    std::ifstream io("/proc/self/io");
    std::string key;
    int64_t value = 0;
    io >> key >> value;
    EXPECT_EQ(key, "rchar:");
    return value;
  }
};

/// A sound file stored inside a zip, or an archive's entry.
TEST_F(AudioPartTest, ByteRanges) {
  for (int format : {kWav, kFlac, kVorbis, kOpus}) {
    write_sound(path("a"), noise(30000), 16000, 1, format);
    const std::string bytes = read_text_file(path("a"));
    const std::vector<float> whole = read_audio(path("a"));
    MediaRef media = sound_at(write("archive.zip", "PK\x03\x04 before " + bytes + "RIFF after OggS"));
    media.offset = 12, media.bytes = static_cast<int64_t>(bytes.size());
    EXPECT_EQ(read_audio(media), whole) << std::hex << format;
    media.start_seconds = 0.5, media.duration_seconds = 0.25;
    const std::vector<float> part = read_audio(media);
    ASSERT_EQ(part.size(), 4000u);
    for (size_t i = 0; i < part.size(); ++i) ASSERT_NEAR(part[i], whole[8000 + i], 0.1) << std::hex << format;
    media.bytes -= 1;
    if (format != kFlac) {
      EXPECT_TRUE(contains(error(media), "archive.zip:12:")) << "the last byte is missing";
    }
    media.bytes += 17;
    EXPECT_TRUE(contains(error(media), "the file has only")) << error(media);
    media.offset = 1'000'000;
    EXPECT_TRUE(contains(error(media), "the file has only")) << error(media);
  }
}

/// To the sample, wherever a part begins; libsndfile's positions in the last page of Vorbis are wrong.
TEST_F(AudioPartTest, BeginAndEndAreExact) {
  for (int rate : {16000, 48000}) {
    for (int format : {kWav, kFlac, kVorbis, kOpus}) {
      write_sound(path("a"), noise(2 * rate + 1234), rate, 1, format);
      // At a speed that undoes resampling, so that samples can be compared.
      const double speed = 16000.0 / rate;
      const std::vector<float> whole = read_audio(sound_at(path("a"), 0, -1, speed));
      ASSERT_EQ(whole.size(), static_cast<size_t>(2 * rate + 1234));
      std::vector<size_t> starts = {1, 159, whole.size() - 1};
      for (size_t at = 700; at + 500 < whole.size(); at += 2311) starts.push_back(at);
      for (size_t begin : starts) {
        const size_t count = std::min<size_t>(500, whole.size() - begin);
        const double start = static_cast<double>(begin) / rate, duration = static_cast<double>(count) / rate;
        const std::vector<float> part = read_audio(sound_at(path("a"), start, duration, speed));
        ASSERT_EQ(part.size(), count);
        for (size_t i = 0; i < count; ++i)
          ASSERT_NEAR(part[i], whole[begin + i], format == kOpus ? 0.1 : 0) << std::hex << format << " " << begin;
      }
    }
  }
}

TEST_F(AudioPartTest, EdgesOfTheRecording) {
  for (int format : {kWav, kFlac, kVorbis, kOpus}) {
    write_sound(path("a"), noise(16000), 16000, 1, format);
    EXPECT_EQ(read_audio(sound_at(path("a"), 0.75)).size(), 4000u);
    EXPECT_EQ(read_audio(sound_at(path("a"), 0.75, 0.5)).size(), 4000u) << "half a second beyond the end is cut";
    EXPECT_EQ(read_audio(sound_at(path("a"), 0.5, 0)).size(), 0u);
    EXPECT_EQ(read_audio(sound_at(path("a"), 1)).size(), 0u);
    EXPECT_TRUE(contains(error(sound_at(path("a"), 0.75, 1)), "the part ends at 1.75 s, but the recording has 1 s"));
    EXPECT_TRUE(contains(error(sound_at(path("a"), 1, 0.1)), "the part begins at 1 s"));
    EXPECT_TRUE(contains(error(sound_at(path("a"), 5)), "the part begins at 5 s, but the recording has 1 s"));
  }
}

TEST_F(AudioPartTest, NumbersAreChecked) {
  write_sound(path("a.wav"), noise(16000), 16000, 1, kWav);
  for (const MediaRef& media :
       {sound_at(path("a.wav"), -1), sound_at(path("a.wav"), NAN), sound_at(path("a.wav"), INFINITY),
        sound_at(path("a.wav"), 0, NAN), sound_at(path("a.wav"), 0, -2), sound_at(path("a.wav"), 0, 1e300),
        sound_at(path("a.wav"), 0, -1, 0), sound_at(path("a.wav"), 0, -1, -1), sound_at(path("a.wav"), 0, -1, NAN),
        sound_at(path("a.wav"), 0, -1, 1e9)})
    EXPECT_TRUE(contains(error(media), "a.wav: ")) << error(media);
}

/// Two seconds out of ten minutes cost a few seconds' worth of reading.
TEST_F(AudioPartTest, OnlyThePartIsRead) {
  const std::vector<float> second = noise(16000);
  SF_INFO info{};
  info.samplerate = 16000, info.channels = 1, info.format = kFlac;
  SNDFILE* file = sf_open(path("long.flac").c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr);
  double fastest = 0;
  sf_command(file, SFC_SET_COMPRESSION_LEVEL, &fastest, sizeof fastest);
  std::vector<short> samples(second.begin(), second.end());
  for (int i = 0; i < 600; ++i) {
    samples[0] = static_cast<short>(i);  // tells the seconds apart
    sf_writef_short(file, samples.data(), 16000);
  }
  sf_close(file);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path("long.flac")));
  const int64_t before = bytes_read();
  const std::vector<float> part = read_audio(sound_at(path("long.flac"), 432, 2));
  const int64_t read = bytes_read() - before;
  ASSERT_EQ(part.size(), 32000u);
  EXPECT_EQ(part[0], 432);
  EXPECT_EQ(part[16000], 433);
  EXPECT_TRUE(std::equal(part.begin() + 1, part.begin() + 16000, second.begin() + 1));
  EXPECT_GT(size, 16'000'000);
  EXPECT_LT(read, size / 30) << "of " << size << " bytes";
}

/// Speed s is `sox speed`: pitch and tempo times s, length divided by s; one resampling, also from other rates.
TEST_F(AudioPartTest, Speeds) {
  for (int rate : {8000, 16000, 44100}) {
    for (int count : {1, 2, 7, 1000, rate, rate + 1}) {
      write_sound(path("a.wav"), sine(count, 500, rate), rate, 1, kWav);
      for (double speed : {0.5, 0.9, 1.0, 1.1, 2.0}) {
        const std::vector<float> read = read_audio(sound_at(path("a.wav"), 0, -1, speed));
        ASSERT_EQ(static_cast<double>(read.size()), std::round(count * 16000.0 / (rate * speed)))
            << rate << " " << speed;
        const std::vector<float> expected = sine(static_cast<int64_t>(read.size()), 500 * speed, 16000);
        for (size_t i = 2000; i + 2000 < read.size(); ++i)
          ASSERT_NEAR(read[i], expected[i], 20) << rate << " " << speed;
      }
    }
  }
  // A part is cut first: its seconds are those of the recording.
  EXPECT_EQ(read_audio(sound_at(path("a.wav"), 0.25, 0.5, 0.8)).size(), 10000u);
}

TEST_F(AudioPartTest, StereoIsMixedBeforeItIsResampled) {
  std::vector<float> left = sine(44100, 700, 44100), stereo;
  for (float x : left) stereo.insert(stereo.end(), {x, -0.5f * x});
  write_sound(path("s.wav"), stereo, 44100, 2, kWav);
  const std::vector<float> read = read_audio(sound_at(path("s.wav"), 0, -1, 1.1));
  const std::vector<float> expected = sine(static_cast<int64_t>(read.size()), 770, 16000);
  ASSERT_EQ(read.size(), 14545u);
  for (size_t i = 2000; i + 2000 < read.size(); ++i) ASSERT_NEAR(read[i], 0.25f * expected[i], 8);
}

}  // namespace
}  // namespace tactus
