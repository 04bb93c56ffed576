// SpecAugment (Park et al. 2019): masks over bands of bins and of frames, and time warping, of training features.
//
// Frames may hold the numbers of several layers of an encoder side by side, [layers x bins]: a frequency mask then
// covers the same bins of every layer.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/rng.h"

namespace tactus {

/// `policy` is a preset of the numbers after it, which may be given as well: "lb" has one mask of each kind
/// (LibriSpeech basic, here with the paper's time mask of 100 frames), "ld" two (LibriSpeech double).
struct SpecAugmentOptions {
  bool enabled = true;
  enum class Policy { lb, ld } policy = Policy::lb;
  int64_t frequency_masks = 1, frequency_width = 27;
  int64_t time_masks = 1, time_width = 100;
  double time_fraction = 1.0;
  int64_t time_warp = 0;
  void visit(ConfigVisitor& v);
};

/// Bands to mask: first index and width.
struct SpecAugmentMasks {
  std::vector<std::pair<int64_t, int64_t>> frequency, time;
};

/// Widths and places, uniform over integers: f in [0, F), f0 in [0, bins - f); t in [0, min(T, floor(fraction rows))),
/// t0 in [0, rows - t). Neither a width nor a place reaches its bound.
SpecAugmentMasks draw_masks(const SpecAugmentOptions& options, int64_t rows, int64_t bins, Rng& rng);
/// Sets the bands to the mean of the whole matrix [rows, layers x bins]. The mean is the sum of the sums of the
/// columns.
void apply_masks(const SpecAugmentMasks& masks, float* frames, int64_t rows, int64_t bins, int64_t layers = 1);

/// Frames before `center` are stretched to `warped` rows and the others to the rest.
struct TimeWarp {
  int64_t center = 0, warped = 0;
};
/// center uniform in [W, rows - W), warped in (center - W, center + W]. None (both 0) where W is 0 or rows <= 2 W.
TimeWarp draw_warp(const SpecAugmentOptions& options, int64_t rows, Rng& rng);
/// Resamples both parts along time by cubic convolution (Keys 1981, a = -0.75; rows beyond a part's ends repeat its
/// last ones), as image libraries resize: row r of n made from m lies at (r + 1/2) m / n - 1/2. `scratch` is work
/// space.
void apply_warp(const TimeWarp& warp, float* frames, int64_t rows, int64_t width, std::vector<float>& scratch);

/// Place of an utterance in a run: what its random numbers are keyed by, so that no thread, batch or resume changes
/// them.
struct AugmentKey {
  uint64_t seed = 0;
  int64_t epoch = 0, utterance = 0;
};
/// Warps and masks [rows, layers x bins].
void augment(const SpecAugmentOptions& options, float* frames, int64_t rows, int64_t bins, int64_t layers,
             const AugmentKey& key, std::vector<float>& scratch);

}  // namespace tactus
