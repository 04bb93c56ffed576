#include "data/audio/fbank.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft.hh>
#include <numbers>

#include "core/error.h"

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

}  // namespace

struct Fbank::Tables {
  int64_t bins;
  std::vector<double> window;
  std::vector<double> mel;                        // [bins, kBins]
  std::vector<std::pair<int64_t, int64_t>> band;  // FFT bins with a weight, per filter
  kissfft<double> fft{kFft / 2, false};
};

Fbank::Fbank(const FeatureOptions& options) : tables_(std::make_unique<Tables>()) {
  if (options.window != "povey" && options.window != "hamming")
    throw ConfigError("fbank: window is '" + options.window + "', expected povey or hamming");
  if (options.low_hz < 0 || options.low_hz >= options.high_hz || options.high_hz > kSampleRate / 2)
    throw ConfigError("fbank: low_hz and high_hz must be in order and within 0 to 8000 Hz");
  Tables& t = *tables_;
  t.bins = options.mel_bins;
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
    t.band.emplace_back(std::min(first, last), last);
  }
}

Fbank::~Fbank() = default;

int64_t Fbank::frames(int64_t samples) {
  return samples < kFrameSamples ? 0 : 1 + (samples - kFrameSamples) / kShiftSamples;
}

const std::vector<double>& Fbank::mel_weights() const { return tables_->mel; }

std::vector<float> Fbank::compute(std::span<const float> samples, uint64_t) const {
  const Tables& t = *tables_;
  const int64_t rows = frames(static_cast<int64_t>(samples.size()));
  std::vector<float> features(static_cast<size_t>(rows * t.bins));
  // In double: single precision would lose weak bins next to strong ones, and results would differ between FFT builds.
  std::vector<double> frame(kFft, 0.0), power(kBins);
  std::vector<std::complex<double>> spectrum(kFft / 2);
  for (int64_t r = 0; r < rows; ++r) {
    const float* wave = samples.data() + r * kShiftSamples;
    double mean = 0;
    for (int64_t i = 0; i < kFrameSamples; ++i) mean += wave[i];
    mean /= kFrameSamples;
    double previous = wave[0] - mean;
    for (int64_t i = 0; i < kFrameSamples; ++i) {
      double x = wave[i] - mean;
      frame[i] = (x - kPreemphasis * previous) * t.window[i];
      previous = x;
    }
    t.fft.transform_real(frame.data(), spectrum.data());
    // The first value packs the real numbers at 0 Hz and at the Nyquist frequency, which has no weight.
    power[0] = spectrum[0].real() * spectrum[0].real();
    for (int64_t k = 1; k < kBins; ++k) power[k] = std::norm(spectrum[k]);
    for (int64_t b = 0; b < t.bins; ++b) {
      double energy = 0;
      for (int64_t k = t.band[b].first; k < t.band[b].second; ++k) energy += t.mel[b * kBins + k] * power[k];
      features[r * t.bins + b] = static_cast<float>(std::log(std::max(energy, kFloor)));
    }
  }
  return features;
}

}  // namespace tactus
