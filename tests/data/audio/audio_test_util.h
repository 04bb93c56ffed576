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

/// Uniform between -8000 and 8000, whole numbers: compresses evenly, and is exact in 16 bits.
inline std::vector<float> noise(int64_t samples, uint64_t seed = 4) {
  Rng rng(seed);
  std::vector<float> wave(static_cast<size_t>(samples));
  for (float& x : wave) x = static_cast<float>(static_cast<int64_t>(rng.below(16001)) - 8000);
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

inline MediaRef sound_at(const std::string& path, double start = 0, double duration = -1, double speed = 1) {
  MediaRef media;
  media.kind = MediaRef::Kind::audio, media.path = path;
  media.start_seconds = start, media.duration_seconds = duration, media.speed = speed;
  return media;
}

/// Replaces four bytes by a little-endian number.
inline std::string with_number(const std::string& bytes, size_t at, uint32_t value) {
  std::string number;
  for (int i = 0; i < 4; ++i) number += static_cast<char>(value >> (8 * i));
  return bytes.substr(0, at) + number + bytes.substr(at + 4);
}

/// First bytes of the pages of an Ogg file, and its size.
inline std::vector<size_t> ogg_pages(const std::string& bytes) {
  std::vector<size_t> pages{0};
  while (pages.back() < bytes.size()) {
    size_t at = pages.back();
    const auto segments = static_cast<uint8_t>(bytes[at + 26]);
    size_t end = at + 27 + segments;
    for (int i = 0; i < segments; ++i) end += static_cast<uint8_t>(bytes[at + 27 + i]);
    pages.push_back(end);
  }
  return pages;
}

}  // namespace tactus
