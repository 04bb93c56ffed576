#include "data/audio/fbank.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <kissfft.hh>
#include <numbers>
#include <string>

#include "core/error.h"
#include "core/rng.h"
#include "data/audio/simd_pack.h"

namespace tactus {
namespace {

constexpr int64_t kFft = 512;
constexpr int64_t kBins = kFft / 2;
constexpr double kPreemphasis = 0.97;
/// The smallest single-precision step at 1, Kaldi's floor under the logarithm.
constexpr double kFloor = 1.1920928955078125e-07;

double mel_of(double hz) { return 1127.0 * std::log(1.0 + hz / 700.0); }

std::vector<double> make_window(const std::string& name) {
  std::vector<double> window(kFrameSamples);
  for (int64_t i = 0; i < kFrameSamples; ++i) {
    double phase = 2.0 * std::numbers::pi * static_cast<double>(i) / (kFrameSamples - 1);
    window[i] = name == "hamming" ? 0.54 - 0.46 * std::cos(phase) : std::pow(0.5 - 0.5 * std::cos(phase), 0.85);
  }
  return window;
}

/// Natural logarithm of positive normal numbers, to about 1e-15 relative: x = 2^e m with m in [sqrt(1/2), sqrt(2)), and
/// log m = 2 atanh(s), s = (m - 1) / (m + 1), by its series. Without branches, so that all lanes go together, and the
/// same on every machine.
Pack log_of(const Pack& x) {
  Pack r;
  for (int l = 0; l < Pack::kLanes; ++l) {
    const auto bits = std::bit_cast<int64_t>(x.v[l]);
    constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2)
    const int64_t exponent = (bits - kRootHalf) >> 52;
    const double m = std::bit_cast<double>(bits - (exponent << 52));
    const double s = (m - 1) / (m + 1), q = s * s;
    double series = 1.0 / 17;
    for (int n = 15; n > 0; n -= 2) series = series * q + 1.0 / n;
    r.v[l] = static_cast<double>(exponent) * std::numbers::ln2 + 2 * s * series;
  }
  return r;
}

}  // namespace

struct Fbank::Tables {
  int64_t bins;
  double dither;
  std::vector<double> window;
  std::vector<double> mel;                        // [bins, kBins]
  std::vector<std::pair<int64_t, int64_t>> band;  // FFT bins with a weight, per filter
  kissfft<Pack> fft{kFft / 2, false};
};

/// Working memory of one call.
struct Fbank::Scratch {
  std::vector<Pack> frame = std::vector<Pack>(kFft, Pack(0.0)), power = std::vector<Pack>(kBins);
  std::vector<std::complex<Pack>> spectrum = std::vector<std::complex<Pack>>(kFft / 2);
};

Fbank::Fbank(const FeatureOptions& options) : tables_(std::make_unique<Tables>()) {
  if (options.window != "povey" && options.window != "hamming")
    throw ConfigError("fbank: window is '" + options.window + "', expected povey or hamming");
  if (options.low_hz < 0 || options.low_hz >= options.high_hz || options.high_hz > kSampleRate / 2)
    throw ConfigError("fbank: low_hz and high_hz must be in order and within 0 to 8000 Hz");
  Tables& t = *tables_;
  t.bins = options.mel_bins, t.dither = options.dither;
  t.window = make_window(options.window);
  t.mel.assign(static_cast<size_t>(t.bins * kBins), 0.0);
  const double low = mel_of(options.low_hz);
  const double step = (mel_of(options.high_hz) - low) / static_cast<double>(t.bins + 1);
  for (int64_t b = 0; b < t.bins; ++b) {
    // Triangles that are linear on the mel scale; neighbours meet at each other's centres.
    double left = low + static_cast<double>(b) * step, centre = left + step, right = centre + step;
    int64_t first = kBins, last = 0;
    for (int64_t k = 0; k < kBins; ++k) {
      double mel = mel_of(static_cast<double>(k) * kSampleRate / kFft);
      if (mel <= left || mel >= right) continue;
      t.mel[b * kBins + k] = mel <= centre ? (mel - left) / step : (right - mel) / step;
      first = std::min(first, k), last = k + 1;
    }
    if (first >= last) {
      throw ConfigError("features.mel_bins is " + std::to_string(t.bins) + ", too many: filter " + std::to_string(b) +
                        " would be narrower than the " +
                        std::to_string(kSampleRate / static_cast<double>(kFft)).substr(0, 5) +
                        " Hz between two points of the spectrum, and empty; lower it, or widen low_hz to high_hz");
    }
    t.band.emplace_back(first, last);
  }
}

Fbank::~Fbank() = default;

int64_t Fbank::frames(int64_t samples) {
  return samples < kFrameSamples ? 0 : 1 + (samples - kFrameSamples) / kShiftSamples;
}

const std::vector<double>& Fbank::mel_weights() const { return tables_->mel; }

/// In double: single precision would lose weak bins next to strong ones, and results would differ between FFT builds.
/// Lanes beyond `rows` repeat the last frame.
void Fbank::compute_block(const float* wave, int64_t rows, float* out, Scratch& scratch) const {
  const Tables& t = *tables_;
  constexpr int kLanes = Pack::kLanes;
  std::vector<Pack>&frame = scratch.frame, &power = scratch.power;
  const float* lane[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) lane[l] = wave + std::min(l, rows - 1) * kShiftSamples;
  Pack mean(0.0);
  for (int64_t i = 0; i < kFrameSamples; ++i) {
    for (int l = 0; l < kLanes; ++l) frame[i].v[l] = lane[l][i];
    mean += frame[i];
  }
  mean /= Pack(kFrameSamples);
  Pack previous = frame[0] - mean;
  for (int64_t i = 0; i < kFrameSamples; ++i) {
    const Pack x = frame[i] - mean;
    frame[i] = (x - kPreemphasis * previous) * t.window[i];
    previous = x;
  }
  t.fft.transform_real(frame.data(), scratch.spectrum.data());
  // The first value packs the real numbers at 0 Hz and at the Nyquist frequency, which has no weight.
  const auto* parts = reinterpret_cast<const Pack*>(scratch.spectrum.data());
  power[0] = parts[0] * parts[0];
  for (int64_t k = 1; k < kBins; ++k) power[k] = parts[2 * k] * parts[2 * k] + parts[2 * k + 1] * parts[2 * k + 1];
  for (int64_t b = 0; b < t.bins; ++b) {
    Pack energy(0.0);
    for (int64_t k = t.band[b].first; k < t.band[b].second; ++k) energy += t.mel[b * kBins + k] * power[k];
    for (double& e : energy.v) e = std::max(e, kFloor);
    const Pack log = log_of(energy);
    for (int64_t l = 0; l < rows; ++l) out[l * t.bins + b] = static_cast<float>(log.v[l]);
  }
}

std::vector<float> Fbank::compute(std::span<const float> samples, uint64_t key) const {
  const Tables& t = *tables_;
  const int64_t rows = frames(static_cast<int64_t>(samples.size()));
  std::vector<float> features(static_cast<size_t>(rows * t.bins));
  if (rows == 0) return features;
  std::vector<float> noisy;
  if (t.dither > 0) {
    noisy.assign(samples.begin(), samples.end());
    Rng noise(mix_key(key, hash_path("data.dither")));
    for (float& x : noisy) x += static_cast<float>(t.dither * noise.normal());
  }
  const float* wave = noisy.empty() ? samples.data() : noisy.data();
  Scratch scratch;
  for (int64_t r = 0; r < rows; r += Pack::kLanes) {
    compute_block(wave + r * kShiftSamples, std::min<int64_t>(Pack::kLanes, rows - r), features.data() + r * t.bins,
                  scratch);
  }
  return features;
}

}  // namespace tactus
