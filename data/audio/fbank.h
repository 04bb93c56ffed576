// Log-mel filter banks as Kaldi computes them: 25 ms frames every 10 ms, only whole frames ("snip edges"), dither off
// or counter-based.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/features.h"

namespace tactus {

/// Window, filters and FFT tables, made once. Immutable: one object serves any number of threads.
class Fbank {
 public:
  /// ConfigError for an unknown window, frequencies out of order, and so many filters that one of them is empty.
  explicit Fbank(const FeatureOptions& options);
  ~Fbank();
  /// Number of frames of `samples` samples: 1 + floor((samples - 400) / 160), 0 for fewer than 400.
  static int64_t frames(int64_t samples);
  /// [frames, mel_bins] from samples at 16 kHz in the range of 16-bit integers. With dither, `key` draws the noise: the
  /// same for the same key and sample, whatever else is computed.
  std::vector<float> compute(std::span<const float> samples, uint64_t key = 0) const;
  /// Weights of the mel filters, [mel_bins, 256] over the FFT's bins without the one at the Nyquist frequency.
  const std::vector<double>& mel_weights() const;

 private:
  struct Tables;
  struct Scratch;
  void compute_block(const float* wave, int64_t rows, float* out, Scratch& scratch) const;
  std::unique_ptr<Tables> tables_;
};

}  // namespace tactus
