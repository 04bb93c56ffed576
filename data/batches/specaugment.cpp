#include "data/batches/specaugment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace tactus {
namespace {

using Bands = std::vector<std::pair<int64_t, int64_t>>;

void draw_bands(int64_t count, int64_t widths, int64_t extent, Rng& rng, Bands& bands) {
  if (widths < 1) return;
  for (int64_t i = 0; i < count; ++i) {
    const auto width = static_cast<int64_t>(rng.below(static_cast<uint64_t>(widths)));
    const auto begin = static_cast<int64_t>(rng.below(static_cast<uint64_t>(extent - width)));
    bands.emplace_back(begin, width);
  }
}

float mean_of(const float* frames, int64_t rows, int64_t width) {
  std::vector<double> columns(static_cast<size_t>(width), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; ++c) columns[c] += frames[r * width + c];
  }
  double sum = 0;
  for (double c : columns) sum += c;
  return static_cast<float>(sum / static_cast<double>(rows * width));
}

/// Weights of the four rows around a place `t` in [0, 1) after the second of them.
std::array<double, 4> cubic_weights(double t) {
  constexpr double a = -0.75;
  const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

void resize_rows(const float* in, int64_t from, float* out, int64_t to, int64_t width) {
  for (int64_t r = 0; r < to; ++r) {
    const double place = (static_cast<double>(r) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double below = std::floor(place);
    const std::array<double, 4> weights = cubic_weights(place - below);
    std::array<const float*, 4> rows;
    for (int64_t k = 0; k < 4; ++k) {
      rows[k] = in + std::clamp<int64_t>(static_cast<int64_t>(below) + k - 1, 0, from - 1) * width;
    }
    for (int64_t c = 0; c < width; ++c) {
      out[r * width + c] = static_cast<float>(weights[0] * rows[0][c] + weights[1] * rows[1][c] +
                                              weights[2] * rows[2][c] + weights[3] * rows[3][c]);
    }
  }
}

}  // namespace

void SpecAugmentOptions::visit(ConfigVisitor& v) {
  v.field("enabled", enabled, {.doc = "Mask bands of the training features"});
  std::string name = policy == Policy::ld ? "ld" : "lb";
  v.field("policy", name,
          {.doc = "Preset of the numbers below: one mask of each kind, or two; what is given besides counts",
           .choices = {"lb", "ld"}});
  // Reading another policy sets the numbers, before the fields below read what is given for them.
  if (const Policy read = name == "ld" ? Policy::ld : Policy::lb; read != policy) {
    policy = read;
    frequency_masks = time_masks = policy == Policy::ld ? 2 : 1;
  }
  v.field("frequency_masks", frequency_masks, {.doc = "Frequency masks per utterance", .min = 0, .max = 100});
  v.field("frequency_width", frequency_width,
          {.doc = "Widths of frequency masks are below this", .unit = "mel bins", .min = 0, .max = 65536});
  v.field("time_masks", time_masks, {.doc = "Time masks per utterance", .min = 0, .max = 100});
  v.field("time_width", time_width,
          {.doc = "Widths of time masks are below this", .unit = "frames", .min = 0, .max = 100000});
  v.field("time_fraction", time_fraction,
          {.doc = "Widths of time masks are below this share of the utterance", .min = 0, .max = 1});
  v.field("time_warp", time_warp,
          {.doc = "Largest shift of a point of the utterance by time warping; 0: none",
           .unit = "frames",
           .min = 0,
           .max = 100000});
}

SpecAugmentMasks draw_masks(const SpecAugmentOptions& options, int64_t rows, int64_t bins, Rng& rng) {
  SpecAugmentMasks masks;
  if (!options.enabled || rows == 0) return masks;
  // A width of all bins or all frames would leave no place to draw.
  draw_bands(options.frequency_masks, std::min(options.frequency_width, bins), bins, rng, masks.frequency);
  const auto share = static_cast<int64_t>(std::floor(static_cast<double>(rows) * options.time_fraction));
  draw_bands(options.time_masks, std::min(options.time_width, share), rows, rng, masks.time);
  return masks;
}

void apply_masks(const SpecAugmentMasks& masks, float* frames, int64_t rows, int64_t bins, int64_t layers) {
  if (rows == 0 || (masks.frequency.empty() && masks.time.empty())) return;
  const int64_t width = bins * layers;
  const float fill = mean_of(frames, rows, width);
  for (auto [begin, count] : masks.frequency) {
    for (int64_t r = 0; r < rows * layers; ++r) std::fill_n(frames + r * bins + begin, count, fill);
  }
  for (auto [begin, count] : masks.time) std::fill_n(frames + begin * width, count * width, fill);
}

TimeWarp draw_warp(const SpecAugmentOptions& options, int64_t rows, Rng& rng) {
  const int64_t w = options.time_warp;
  if (!options.enabled || w == 0 || rows <= 2 * w) return {};
  const int64_t center = w + static_cast<int64_t>(rng.below(static_cast<uint64_t>(rows - 2 * w)));
  return {center, center - w + 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(2 * w)))};
}

void apply_warp(const TimeWarp& warp, float* frames, int64_t rows, int64_t width, std::vector<float>& scratch) {
  if (warp.center == warp.warped) return;
  scratch.assign(frames, frames + rows * width);
  resize_rows(scratch.data(), warp.center, frames, warp.warped, width);
  resize_rows(scratch.data() + warp.center * width, rows - warp.center, frames + warp.warped * width,
              rows - warp.warped, width);
}

void augment(const SpecAugmentOptions& options, float* frames, int64_t rows, int64_t bins, int64_t layers,
             const AugmentKey& key, std::vector<float>& scratch) {
  if (!options.enabled) return;
  Rng rng(mix_key(mix_key(mix_key(key.seed, hash_path("data.specaugment")), static_cast<uint64_t>(key.epoch)),
                  static_cast<uint64_t>(key.utterance)));
  apply_warp(draw_warp(options, rows, rng), frames, rows, bins * layers, scratch);
  apply_masks(draw_masks(options, rows, bins, rng), frames, rows, bins, layers);
}

}  // namespace tactus
