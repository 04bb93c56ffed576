#include "data/features.h"

#include <algorithm>
#include <cmath>

namespace tactus {

void FeatureOptions::visit(ConfigVisitor& v) {
  v.field("kind", kind,
          {.doc = "fbank: log-mel filter banks of the audio; stored: matrices that exist; none: items are text",
           .choices = {"fbank", "stored", "none"}});
  v.field("window", window, {.doc = "Window function of a frame", .choices = {"povey", "hamming"}});
  v.field("mel_bins", mel_bins, {.doc = "Number of mel filters", .min = 4, .max = 256});
  v.field("low_hz", low_hz, {.doc = "Lower edge of the first filter", .unit = "Hz", .min = 0, .max = 8000});
  v.field("high_hz", high_hz, {.doc = "Upper edge of the last filter", .unit = "Hz", .min = 0, .max = 8000});
  v.field("dither", dither,
          {.doc = "Standard deviation of noise added to the samples, keyed by the item's id; 0: none",
           .unit = "16-bit steps",
           .min = 0,
           .max = 100});
  v.field("width", width,
          {.doc = "Stored features: numbers in a frame of one layer; 0: as in the first item", .min = 0, .max = 65536});
  v.field("layers", layers, {.doc = "Stored features: layers in each frame", .min = 1, .max = 256});
  v.field("frames_per_second", frames_per_second,
          {.doc = "Stored features: frames of a second of audio", .unit = "frames/s", .min = 0.1, .max = 100000});
}

int64_t FeatureOptions::frame_width() const {
  if (kind == "none") return 0;
  return kind == "stored" ? layers * width : mel_bins;
}

void SpecAugmentOptions::visit(ConfigVisitor& v) {
  v.field("enabled", enabled, {.doc = "Mask bands of the training features"});
  v.field("frequency_masks", frequency_masks, {.doc = "Frequency masks per utterance", .min = 0, .max = 100});
  v.field("frequency_width", frequency_width,
          {.doc = "Widths of frequency masks are below this", .unit = "mel bins", .min = 0, .max = 256});
  v.field("time_masks", time_masks, {.doc = "Time masks per utterance", .min = 0, .max = 100});
  v.field("time_width", time_width,
          {.doc = "Widths of time masks are below this", .unit = "frames", .min = 0, .max = 100000});
  v.field("time_fraction", time_fraction,
          {.doc = "Widths of time masks are below this share of the utterance", .min = 0, .max = 1});
}

void apply_cmvn(float* frames, int64_t rows, int64_t bins) {
  if (rows == 0) return;
  std::vector<double> sum(bins, 0.0), squares(bins, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const float* frame = frames + r * bins;
    for (int64_t b = 0; b < bins; ++b) {
      double x = frame[b];
      sum[b] += x;
      // x * x is exact in double (22 bits for stored features), so contraction to one operation changes nothing.
      squares[b] += x * x;
    }
  }
  double n = static_cast<double>(rows);
  for (int64_t b = 0; b < bins; ++b) {
    double mean = sum[b] / n;
    // Spelt as one fused operation because compilers differ in fusing it by themselves.
    double variance = std::fma(-mean, mean, squares[b] / n);
    sum[b] = mean;
    squares[b] = std::sqrt(std::max(variance, 1e-10));
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* frame = frames + r * bins;
    for (int64_t b = 0; b < bins; ++b) frame[b] = static_cast<float>((frame[b] - sum[b]) / squares[b]);
  }
}

SpecAugmentMasks draw_masks(const SpecAugmentOptions& options, int64_t rows, int64_t bins, Rng& rng) {
  SpecAugmentMasks masks;
  if (!options.enabled || rows == 0) return masks;
  auto draw = [&](int64_t count, int64_t widths, int64_t extent, std::vector<std::pair<int64_t, int64_t>>& bands) {
    if (widths < 1) return;
    for (int64_t i = 0; i < count; ++i) {
      int64_t width = static_cast<int64_t>(rng.below(static_cast<uint64_t>(widths)));
      int64_t begin = static_cast<int64_t>(rng.below(static_cast<uint64_t>(extent - width)));
      bands.emplace_back(begin, width);
    }
  };
  // A width of all bins or all frames would leave no place to draw.
  draw(options.frequency_masks, std::min(options.frequency_width, bins), bins, masks.frequency);
  auto share = static_cast<int64_t>(std::floor(static_cast<double>(rows) * options.time_fraction));
  draw(options.time_masks, std::min(options.time_width, share), rows, masks.time);
  return masks;
}

void apply_masks(const SpecAugmentMasks& masks, float* frames, int64_t rows, int64_t bins) {
  double sum = 0;
  for (int64_t i = 0; i < rows * bins; ++i) sum += frames[i];
  float fill = rows == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(rows * bins));
  for (auto [begin, width] : masks.frequency) {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(frames + r * bins + begin, width, fill);
  }
  for (auto [begin, width] : masks.time) std::fill_n(frames + begin * bins, width * bins, fill);
}

void augment(const SpecAugmentOptions& options, float* frames, int64_t rows, int64_t bins, uint64_t seed, int64_t epoch,
             int64_t utterance) {
  if (!options.enabled) return;
  uint64_t key = mix_key(mix_key(mix_key(seed, hash_path("data.specaugment")), static_cast<uint64_t>(epoch)),
                         static_cast<uint64_t>(utterance));
  Rng rng(key);
  apply_masks(draw_masks(options, rows, bins, rng), frames, rows, bins);
}

}  // namespace tactus
