// Log-mel feature matrices [frames, bins] and what is done to them at load: utterance CMVN and SpecAugment.
//
// Both are computed in double in a fixed order, and the sums over frames of half-precision features are exact in
// double, so that the values are bitwise the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/rng.h"

namespace tactus {

/// What the frames of a corpus are. Part of a corpus file; a model refuses features of another kind.
struct FeatureOptions {
  std::string kind =
      "fbank";  ///< fbank: log-mel filter banks of the audio; stored: matrices that exist; none: text only
  std::string window = "povey";  ///< povey or hamming
  int64_t mel_bins = 80;
  double low_hz = 20, high_hz = 8000;
  double dither = 0;   ///< standard deviation of the noise added to the samples; counter-based, keyed by the item's id
  int64_t width = 0;   ///< stored: numbers in a frame of one layer; 0: as found in the first item
  int64_t layers = 1;  ///< stored: layers of a self-supervised encoder in each frame
  double frames_per_second = 100;
  void visit(ConfigVisitor& v);
  /// Numbers in a frame: mel_bins, or layers x width; 0 for text.
  int64_t frame_width() const;
};
constexpr int64_t kSampleRate = 16000;
constexpr int64_t kFrameSamples = 400;  ///< 25 ms
constexpr int64_t kShiftSamples = 160;  ///< 10 ms

/// Utterance mean and variance normalisation, in place: per bin (x - mean) / sqrt(max(E[x^2] - mean^2, 1e-10)).
void apply_cmvn(float* frames, int64_t rows, int64_t bins);

/// SpecAugment (Park et al. 2019) without time warping, policy "LB" scaled to speech translation by default.
struct SpecAugmentOptions {
  bool enabled = true;
  int64_t frequency_masks = 1, frequency_width = 27;
  int64_t time_masks = 1, time_width = 100;
  double time_fraction = 1.0;
  void visit(ConfigVisitor& v);
};

/// Bands to mask: first index and width.
struct SpecAugmentMasks {
  std::vector<std::pair<int64_t, int64_t>> frequency, time;
};

/// Widths and places, uniform over integers: f in [0, F), f0 in [0, bins - f); t in [0, min(T, floor(fraction rows))),
/// t0 in [0, rows - t). Neither a width nor a place reaches its bound.
SpecAugmentMasks draw_masks(const SpecAugmentOptions& options, int64_t rows, int64_t bins, Rng& rng);
/// Sets the bands to the mean of the whole matrix.
void apply_masks(const SpecAugmentMasks& masks, float* frames, int64_t rows, int64_t bins);
/// Both, with a generator keyed by (seed, epoch, utterance), so that no thread, batch or resume changes the draw.
void augment(const SpecAugmentOptions& options, float* frames, int64_t rows, int64_t bins, uint64_t seed, int64_t epoch,
             int64_t utterance);

}  // namespace tactus
