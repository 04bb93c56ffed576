// Damaged sound files: every outcome is samples or a DataError, and memory stays in proportion to the file.
#include <sys/resource.h>

#include <algorithm>
#include <array>

#include "data/audio/read_audio.h"
#include "tests/data/audio/audio_test_util.h"

namespace tactus {
namespace {

struct Outcome {
  int read = 0, refused = 0;
};

/// Flips, cuts, repeats, removes or overwrites some bytes, most of them where headers lie.
std::string damaged(std::string bytes, Rng& rng) {
  const auto below = [&](size_t n) { return static_cast<size_t>(rng.below(std::max<size_t>(n, 1))); };
  constexpr uint32_t kExtreme[] = {0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  for (size_t change = 1 + below(3); change > 0; --change) {
    const size_t size = bytes.size();
    const size_t at = below(std::array{std::min<size_t>(size, 60), std::min<size_t>(size, 400), size}[below(3)]);
    switch (below(6)) {
      case 0:
      case 1:
        if (at < size) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        if (below(4) == 0) bytes.resize(at);
        break;
      case 3:
        if (at + 4 <= size) bytes = with_number(bytes, at, kExtreme[below(std::size(kExtreme))]);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, below(20)));
        break;
      default:
        bytes.erase(at, below(8));
    }
  }
  return bytes;
}

/// Makes the checksums right again, so that what lies below them is reached.
std::string with_checksums(std::string bytes) {
  for (size_t at = 0; at + 27 < bytes.size() && bytes.compare(at, 4, "OggS") == 0;) {
    const auto segments = static_cast<uint8_t>(bytes[at + 26]);
    size_t end = at + 27 + segments;
    for (size_t i = at + 27; i < std::min(at + 27 + segments, bytes.size()); ++i) end += static_cast<uint8_t>(bytes[i]);
    end = std::min(end, bytes.size());
    bytes = with_number(bytes, at + 22, 0);
    uint32_t crc = 0;
    for (size_t i = at; i < end; ++i) {
      crc ^= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << 24;
      for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x80000000u) != 0 ? 0x04c11db7u : 0u);
    }
    bytes = with_number(bytes, at + 22, crc);
    at = end;
  }
  return bytes;
}

class AudioFuzzTest : public FolderTest {
 protected:
  static int64_t peak_kilobytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  }
  Outcome run(int format, int channels, int rounds) {
    write_sound(path("whole"), noise(3000 * channels), 16000, channels, format);
    const std::string whole = read_text_file(path("whole"));
    const bool ogg = (format & SF_FORMAT_TYPEMASK) == SF_FORMAT_OGG;
    Outcome outcome;
    const int64_t before = peak_kilobytes();
    for (int round = 0; round < rounds; ++round) {
      Rng rng(mix_key(static_cast<uint64_t>(format), static_cast<uint64_t>(round)));
      std::string bytes = damaged(whole, rng);
      if (ogg && round % 4 != 0) bytes = with_checksums(std::move(bytes));
      // A file that is overwritten is flushed to disk by some file systems, which takes longer than all the rest.
      const std::string file = write("fuzz" + std::to_string(round), bytes);
      MediaRef media = sound_at(file);
      if (round % 3 == 1) media = sound_at(file, 0.05, 0.1, round % 2 == 0 ? 1.0 : 1.1);
      try {
        const std::vector<float> samples = read_audio(media);
        ++outcome.read;
        EXPECT_LE(samples.size(), 100 * whole.size() + 100000) << "round " << round;
        EXPECT_TRUE(std::all_of(samples.begin(), samples.end(), [](float x) { return std::isfinite(x); }));
      } catch (const DataError& e) {
        ++outcome.refused;
        const std::string text = e.what();
        EXPECT_TRUE(text.starts_with(file) && !contains(text, "\n")) << text;
      } catch (const std::exception& e) {
        ADD_FAILURE() << "round " << round << ": " << e.what();
      }
      std::filesystem::remove(file);
    }
    EXPECT_LT(peak_kilobytes() - before, 400'000);
    EXPECT_GT(outcome.refused, rounds / 10);
    EXPECT_GT(outcome.read, rounds / 20);
    return outcome;
  }
};

TEST_F(AudioFuzzTest, Wav) {
  run(SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 300);
  run(SF_FORMAT_WAVEX | SF_FORMAT_PCM_24, 2, 300);
  run(SF_FORMAT_RF64 | SF_FORMAT_PCM_16, 1, 300);
}

TEST_F(AudioFuzzTest, Flac) { run(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1, 300); }

TEST_F(AudioFuzzTest, Vorbis) { run(SF_FORMAT_OGG | SF_FORMAT_VORBIS, 1, 300); }

TEST_F(AudioFuzzTest, Opus) { run(SF_FORMAT_OGG | SF_FORMAT_OPUS, 1, 300); }

}  // namespace
}  // namespace tactus
