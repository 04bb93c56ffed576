// What the frames of a corpus are. data/batches/normalise.h and data/batches/specaugment.h say what is done to them at load.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/config.h"

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

}  // namespace tactus
