// Sound files for tests.
#pragma once

#include <sndfile.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "tests/data/data_test_util.h"

namespace tactus {

/// Amplitude 8000 in the range of 16-bit integers.
inline std::vector<float> sine(int64_t samples, double hz, double rate) {
  std::vector<float> wave;
  for (int64_t i = 0; i < samples; ++i)
    wave.push_back(static_cast<float>(8000 * std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / rate)));
  return wave;
}

/// `samples` interleaved, in the range of 16-bit integers.
inline void write_sound(const std::string& path, const std::vector<float>& samples, int rate, int channels,
                        int format) {
  SF_INFO info{};
  info.samplerate = rate, info.channels = channels, info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr) << sf_strerror(nullptr);
  std::vector<float> scaled;
  for (float x : samples) scaled.push_back(x / 32768.0f);
  // The Vorbis encoder's stack grows with the size of one write.
  for (size_t at = 0; at < scaled.size(); at += 4096 * channels) {
    auto frames = static_cast<sf_count_t>(std::min<size_t>(4096, (scaled.size() - at) / channels));
    sf_writef_float(file, scaled.data() + at, frames);
  }
  sf_close(file);
}

}  // namespace tactus
