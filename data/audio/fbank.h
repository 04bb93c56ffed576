// Log-mel filter banks as Kaldi computes them: 25 ms frames every 10 ms, only whole frames ("snip edges"), no dither.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/features.h"

namespace tactus {

/// Computes features with window, filters and FFT tables prepared once. One object may serve one thread at a time.
class Fbank {
 public:
  explicit Fbank(const FeatureOptions& options);
  ~Fbank();
  /// Number of frames of `samples` samples: 1 + floor((samples - 400) / 160), 0 for fewer than 400.
  static int64_t frames(int64_t samples);
  /// [frames, mel_bins] from samples at 16 kHz in the range of 16-bit integers.
  std::vector<float> compute(std::span<const float> samples, uint64_t = 0) const;
  /// Weights of the mel filters, [mel_bins, 256] over the FFT's bins without the one at the Nyquist frequency.
  const std::vector<double>& mel_weights() const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace tactus
