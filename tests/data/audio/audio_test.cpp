#include <sndfile.h>
#include <sys/stat.h>

#include <cmath>
#include <map>
#include <numbers>

#include "data/audio/read_audio.h"
#include "tests/data/audio/audio_test_util.h"

namespace tactus {
namespace {

const std::map<std::string, int> kFormats = {{"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                                             {"a.rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16},
                                             {"a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
                                             {"a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
                                             {"a.opus", SF_FORMAT_OGG | SF_FORMAT_OPUS}};

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
  const std::vector<float> samples = noise(5000);
  for (int container : {SF_FORMAT_WAV, SF_FORMAT_WAVEX, SF_FORMAT_RF64, SF_FORMAT_FLAC}) {
    for (int codec : {SF_FORMAT_PCM_16, SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_FLOAT, SF_FORMAT_DOUBLE}) {
      if (container == SF_FORMAT_FLAC && codec > SF_FORMAT_PCM_24) continue;
      write_sound(path("a"), samples, 16000, 1, container | codec);
      EXPECT_EQ(read_audio(path("a")), samples) << std::hex << container << " " << codec;
    }
  }
  write_sound(path("8.wav"), noise(256), 16000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_U8);
  std::string bytes = read_text_file(path("8.wav"));
  std::vector<float> expected;
  for (int i = 0; i < 256; ++i)
    bytes[bytes.size() - 256 + i] = static_cast<char>(i), expected.push_back(256.0f * (i - 128));
  EXPECT_EQ(read_audio(write("8.wav", bytes)), expected);
}

/// The levels of ITU-T G.711, in 16-bit steps.
TEST_F(AudioTest, TelephoneFormats) {
  write_sound(path("u.wav"), {1, 2, 3, 4}, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_ULAW);
  std::string bytes = read_text_file(path("u.wav"));
  write("u.wav", bytes.replace(bytes.size() - 4, 4, std::string("\xff\x80\x00\xf0", 4)));
  EXPECT_EQ(read_audio(path("u.wav")), (std::vector<float>{0, 32124, -32124, 120}));
  write_sound(path("a.wav"), {1, 2, 3, 4}, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_ALAW);
  bytes = read_text_file(path("a.wav"));
  write("a.wav", bytes.replace(bytes.size() - 4, 4, "\xd5\xaa\x2a\x55"));
  EXPECT_EQ(read_audio(path("a.wav")), (std::vector<float>{8, 32256, -32256, -8}));
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
  const std::vector<float> samples = noise(40000);
  for (const auto& [name, format] : kFormats) {
    write_sound(path(name), samples, 16000, 1, format);
    EXPECT_EQ(read_audio(path(name)).size(), 40000u) << name;
    for (double share : {0.0, 0.0002, 0.001, 0.01, 0.1, 0.5, 0.9, 0.9999}) error(cut(name, share));
  }
  EXPECT_TRUE(contains(error(cut("a.wav", 0.5)), "cut short: the header promises 80000 bytes"));
  EXPECT_TRUE(contains(error(cut("a.flac", 0.001)), "cut short: it ends before its samples begin"));
  EXPECT_TRUE(contains(error(cut("a.ogg", 0.5)), "cut short: it ends in the page at byte"));
}

/// What libsndfile takes for a shorter recording, or plays on as if nothing were missing.
TEST_F(AudioTest, OggPagesAreCounted) {
  for (const char* name : {"a.ogg", "a.opus"}) {
    write_sound(path(name), noise(40000), 16000, 1, kFormats.at(name));
    const std::string bytes = read_text_file(path(name));
    const std::vector<size_t> pages = ogg_pages(bytes);
    const size_t last = pages[pages.size() - 2], middle = pages[pages.size() - 3];
    for (size_t i = 1; i + 1 < pages.size(); ++i) error(write("cut", bytes.substr(0, pages[i])));
    EXPECT_TRUE(contains(error(write("cut", bytes.substr(0, last))), "its last page is missing"));
    EXPECT_TRUE(contains(error(write("hole", std::string(bytes).erase(middle, last - middle))),
                         "a page is missing at byte " + std::to_string(middle)));
    std::string damaged = bytes;
    damaged[(middle + last) / 2] ^= 0x10;
    EXPECT_TRUE(contains(error(write("bad", damaged)), "checksum of the page at byte " + std::to_string(middle)));
    write_sound(path("b"), noise(9000), 16000, 1, kFormats.at(name));
    EXPECT_TRUE(contains(error(write("two", bytes + read_text_file(path("b")))), "more than one stream"));
    EXPECT_EQ(read_audio(write("tag", bytes + "TAG" + std::string(125, ' '))), read_audio(path(name)));
  }
}

/// Programs that cannot go back write headers without a length.
TEST_F(AudioTest, UnknownLengths) {
  const std::vector<float> samples = noise(20000);
  write_sound(path("a.wav"), samples, 16000, 1, kFormats.at("a.wav"));
  const std::string wav = read_text_file(path("a.wav"));
  for (uint32_t size : {0xffffffffu, 0x7fffffffu, 0x7ffff000u})
    EXPECT_EQ(read_audio(write("b.wav", with_number(with_number(wav, 4, size), 40, size))), samples) << size;
  EXPECT_TRUE(contains(error(write("b.wav", with_number(wav, 40, 0))), "promises no samples, but 40000 bytes follow"));

  write_sound(path("a.flac"), samples, 16000, 1, kFormats.at("a.flac"));
  std::string flac = read_text_file(path("a.flac"));
  flac[21] &= '\xf0';
  flac.replace(22, 4, 4, '\0');
  EXPECT_EQ(read_audio(write("b.flac", flac)), samples);
  EXPECT_EQ(read_audio(sound_at(path("b.flac"), 1, 0.25)).size(), 4000u);
  error(write("b.flac", flac.substr(0, flac.size() / 2)));
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_audio(sound_at(path("b.flac"), 1e6)); }), "b.flac"));
}

/// Valid files without samples: no error, so that preparation can keep their items.
TEST_F(AudioTest, NoSamples) {
  for (const char* name : {"a.wav", "a.ogg"}) {
    write_sound(path(name), {}, 16000, 1, kFormats.at(name));
    EXPECT_TRUE(read_audio(path(name)).empty()) << name;
    EXPECT_TRUE(read_audio(sound_at(path(name), 0, 0.1, 1.1)).empty()) << name;
    EXPECT_TRUE(contains(message_of<DataError>([&] { read_audio(sound_at(path(name), 1)); }), "has no samples"));
  }
  const std::string wav = read_text_file(path("a.wav"));
  EXPECT_TRUE(read_audio(write("b.wav", wav + std::string("LIST\x04\0\0\0INFO", 12))).empty());
  EXPECT_TRUE(read_audio(write("b.wav", with_number(wav, 40, 0xffffffffu))).empty());
  write_sound(path("a.flac"), noise(1000), 16000, 1, kFormats.at("a.flac"));
  std::string flac = read_text_file(path("a.flac")).substr(0, 42);
  flac[4] = '\x80';  // the stream information becomes the last block
  flac[21] &= '\xf0';
  flac.replace(22, 4, 4, '\0');
  EXPECT_TRUE(read_audio(write("b.flac", flac)).empty());
  write_sound(path("one.wav"), {5}, 16000, 1, kFormats.at("a.wav"));
  EXPECT_EQ(read_audio(path("one.wav")), std::vector<float>{5});
  EXPECT_TRUE(contains(error(write("zero.wav", "")), "has 0 bytes"));
}

TEST_F(AudioTest, DamagedFilesAreErrors) {
  write_sound(path("a.flac"), sine(40000, 440, 16000), 16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  std::string bytes = read_text_file(path("a.flac"));
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 600; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);
  error(write("damaged.flac", bytes));
  EXPECT_TRUE(contains(error(path("absent.flac")), "No such file"));
  EXPECT_TRUE(contains(error(folder_.string()), "is not a file"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error(path("pipe")), "is not a file"));
  write_sound(path("nan.wav"), {1, NAN, 2}, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
  EXPECT_TRUE(contains(error(path("nan.wav")), "not a finite number"));
  const std::string wav = read_text_file(path("nan.wav"));
  EXPECT_TRUE(contains(error(write("rate.wav", with_number(wav, 24, 3))), "at 3 Hz"));
  EXPECT_TRUE(contains(error(write("fmt.wav", std::string(wav).replace(12, 4, "junk"))), "before the format chunk"));
}

/// The decoder of MP3 has moved published results by 20 BLEU; what a library would decode depends on its version.
TEST_F(AudioTest, OtherCodecsAreRefusedByName) {
  auto refused = [&](const std::string& file, const std::string& name) {
    const std::string message = error(file);
    EXPECT_TRUE(contains(message, "is " + name + ", which is not read") && contains(message, "convert it to FLAC"))
        << message;
  };
  for (const auto& [format, name] : {std::pair{SF_FORMAT_WAV | SF_FORMAT_MS_ADPCM, "WAV with Microsoft ADPCM"},
                                     {SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, "WAV with IMA ADPCM"},
                                     {SF_FORMAT_WAV | SF_FORMAT_GSM610, "WAV with GSM 6.10"},
                                     {SF_FORMAT_AIFF | SF_FORMAT_PCM_16, "AIFF"},
                                     {SF_FORMAT_AU | SF_FORMAT_PCM_16, "AU"},
                                     {SF_FORMAT_NIST | SF_FORMAT_PCM_16, "NIST SPHERE"},
                                     {SF_FORMAT_CAF | SF_FORMAT_PCM_16, "Core Audio"},
                                     {SF_FORMAT_W64 | SF_FORMAT_PCM_16, "Wave64"}}) {
    write_sound(path("x"), noise(4000), 16000, 1, format);
    refused(path("x"), name);
  }
  refused(write("a.mp3", std::string("ID3\x04\0\0\0\0\0\0", 10) + std::string(5000, '\0')), "MP3");
  refused(write("b.mp3", std::string("\xff\xfb\x90\x64") + std::string(5000, '\0')), "MP3");
  refused(write("a.aac", std::string("\xff\xf1\x50\x80") + std::string(5000, '\0')), "AAC");
  refused(write("a.m4a", std::string("\0\0\0\x20"
                                     "ftypM4A ",
                                     12) +
                             std::string(5000, '\0')),
          "MP4 (AAC or ALAC)");
  write_sound(path("a.wav"), noise(4000), 16000, 1, kFormats.at("a.wav"));
  const std::string wav = read_text_file(path("a.wav"));
  refused(write("mp3.wav", with_number(wav, 20, 0x10055)), "WAV with MP3");
  refused(write("odd.wav", with_number(wav, 20, 0x11234)), "WAV with codec number 4660");
  write_sound(path("a.opus"), noise(4000), 16000, 1, kFormats.at("a.opus"));
  const std::string opus = read_text_file(path("a.opus"));
  refused(write("spx.ogg", std::string(opus).replace(28, 8, "Speex   ")), "Ogg with Speex");
  refused(write("flac.ogg", std::string(opus).replace(28, 5,
                                                      "\x7f"
                                                      "FLAC")),
          "Ogg with FLAC");
  EXPECT_TRUE(contains(error(write("text.flac", "no sound at all, but long enough to be looked at as a file")),
                       "neither WAV, FLAC nor Ogg (it begins with the bytes 6e 6f 20 73)"));
}

}  // namespace
}  // namespace tactus
