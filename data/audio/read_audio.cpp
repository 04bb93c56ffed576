#include "data/audio/read_audio.h"

#include <samplerate.h>
#include <sndfile.h>

#include <cmath>
#include <memory>

#include "core/error.h"
#include "core/files.h"
#include "data/audio/container_check.h"
#include "data/features.h"

namespace tactus {
namespace {

constexpr int64_t kBlockFrames = 1 << 14;
constexpr int kMaxChannels = 64;

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

std::string without_final_stop(std::string text) {
  while (!text.empty() && (text.back() == '.' || text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// All frames, channels averaged, scaled to the range of 16-bit integers.
std::vector<float> read_mono(const std::string& path, int& sample_rate) {
  SF_INFO info{};
  std::unique_ptr<SNDFILE, CloseSound> file(sf_open(path.c_str(), SFM_READ, &info));
  if (!file) throw DataError(path + ": cannot read as audio: " + without_final_stop(sf_strerror(nullptr)));
  if (info.channels < 1 || info.channels > kMaxChannels || info.samplerate < 1000 || info.samplerate > 768000) {
    throw DataError(path + ": " + std::to_string(info.channels) + " channels at " + std::to_string(info.samplerate) +
                    " Hz; expected 1 to 64 channels at 1 to 768 kHz");
  }
  sample_rate = info.samplerate;
  std::vector<float> mono;
  // The header's frame count is not trusted with memory: it grows with what was really read.
  std::vector<float> block(static_cast<size_t>(kBlockFrames) * info.channels);
  const double scale = 32768.0 / info.channels;
  for (sf_count_t got; (got = sf_readf_float(file.get(), block.data(), kBlockFrames)) > 0;) {
    for (sf_count_t i = 0; i < got; ++i) {
      double sum = 0;
      for (int c = 0; c < info.channels; ++c) sum += block[static_cast<size_t>(i) * info.channels + c];
      if (!std::isfinite(sum))
        throw DataError(path + ": sample " + std::to_string(mono.size()) + " is not a finite number");
      mono.push_back(static_cast<float>(sum * scale));
    }
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR) {
    throw DataError(path + ": damaged after " + std::to_string(mono.size()) +
                    " samples: " + without_final_stop(sf_strerror(file.get())));
  }
  // Ogg files without their last page have no length at all; libsndfile then reports the largest number.
  if (static_cast<sf_count_t>(mono.size()) < info.frames) {
    std::string promised = info.frames == SF_COUNT_MAX ? "more" : std::to_string(info.frames);
    throw DataError(path + ": cut short: " + std::to_string(mono.size()) + " samples, expected " + promised);
  }
  return mono;
}

std::vector<float> resample(const std::vector<float>& samples, int from, const std::string& path) {
  const double ratio = static_cast<double>(kSampleRate) / from;
  if (!src_is_valid_ratio(ratio)) throw DataError(path + ": cannot resample from " + std::to_string(from) + " Hz");
  std::vector<float> out(static_cast<size_t>(std::ceil(static_cast<double>(samples.size()) * ratio)) + 16);
  SRC_DATA data{};
  data.data_in = samples.data();
  data.input_frames = static_cast<long>(samples.size());
  data.data_out = out.data();
  data.output_frames = static_cast<long>(out.size());
  data.src_ratio = ratio;
  if (int code = src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1); code != 0)
    throw DataError(path + ": cannot resample: " + src_strerror(code));
  out.resize(static_cast<size_t>(data.output_frames_gen));
  return out;
}

}  // namespace

std::vector<float> read_audio(const MediaRef& m) { return read_audio(m.path); }
std::vector<float> read_audio(const std::string& path) {
  check_riff_complete(path);  // opens the file as well, and so reports a missing one in the system's words
  int sample_rate = 0;
  std::vector<float> samples = read_mono(path, sample_rate);
  if (samples.empty()) throw DataError(path + ": holds no samples");
  return sample_rate == kSampleRate ? samples : resample(samples, sample_rate, path);
}

}  // namespace tactus
