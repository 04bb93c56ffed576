#include "data/batches/normalise.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files/h5.h"

namespace tactus {
namespace {

constexpr double kLeastVariance = 1e-10;
constexpr const char* kFormat = "tactus statistics";

/// frames = (frames - mean) / deviation, per bin.
void scale(float* frames, int64_t rows, int64_t bins, const double* mean, const double* deviation) {
  for (int64_t r = 0; r < rows; ++r) {
    float* frame = frames + r * bins;
    for (int64_t b = 0; b < bins; ++b) frame[b] = static_cast<float>((frame[b] - mean[b]) / deviation[b]);
  }
}

double variance_of(double squares, double mean, double n) {
  // Spelt as one fused operation because compilers differ in fusing it by themselves.
  return std::fma(-mean, mean, squares / n);
}

}  // namespace

void apply_cmvn(float* frames, int64_t rows, int64_t bins) {
  if (rows == 0) return;
  std::vector<double> sums(static_cast<size_t>(2 * bins), 0.0);
  double *sum = sums.data(), *squares = sums.data() + bins;
  for (int64_t r = 0; r < rows; ++r) {
    const float* frame = frames + r * bins;
    for (int64_t b = 0; b < bins; ++b) {
      const double x = frame[b];
      sum[b] += x;
      // x * x is exact in double (22 bits for stored features), so contraction to one operation changes nothing.
      squares[b] += x * x;
    }
  }
  const double n = static_cast<double>(rows);
  for (int64_t b = 0; b < bins; ++b) {
    sum[b] /= n;
    squares[b] = std::sqrt(std::max(variance_of(squares[b], sum[b], n), kLeastVariance));
  }
  scale(frames, rows, bins, sum, squares);
}

void subtract_mean(float* frames, int64_t rows, int64_t bins) {
  std::vector<double> mean(static_cast<size_t>(bins), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t b = 0; b < bins; ++b) mean[b] += frames[r * bins + b];
  }
  for (double& m : mean) m /= static_cast<double>(std::max<int64_t>(rows, 1));
  for (int64_t r = 0; r < rows; ++r) {
    float* frame = frames + r * bins;
    for (int64_t b = 0; b < bins; ++b) frame[b] = static_cast<float>(frame[b] - mean[b]);
  }
}

Cmvn cmvn_from_string(const std::string& name) {
  if (name == "none") return Cmvn::none;
  if (name == "utterance") return Cmvn::utterance;
  if (name == "utterance_mean") return Cmvn::utterance_mean;
  if (name == "global") return Cmvn::global;
  throw ConfigError("data.cmvn is '" + name + "', expected none, utterance, utterance_mean or global");
}

Normaliser::Normaliser(Cmvn kind) : kind_(kind) {
  if (kind == Cmvn::global) throw ConfigError("global normalisation needs statistics");
}

Normaliser Normaliser::global(const FeatureMoments& moments, const std::string& where) {
  if (moments.frames <= 0) throw DataError(where + ": global normalisation needs statistics, these are of no frames");
  auto statistics = std::make_shared<Statistics>();
  const double n = static_cast<double>(moments.frames);
  for (size_t b = 0; b < moments.sum.size(); ++b) {
    const double mean = moments.sum[b] / n, variance = variance_of(moments.squares[b], mean, n);
    if (!std::isfinite(mean) || !std::isfinite(variance)) {
      throw DataError(where + ": statistics of bin " + std::to_string(b) + " are not finite");
    }
    statistics->mean.push_back(mean);
    statistics->deviation.push_back(variance < kLeastVariance ? 1 : std::sqrt(variance));
    if (variance < kLeastVariance) statistics->floored.push_back(static_cast<int64_t>(b));
  }
  Normaliser normaliser(Cmvn::none);
  normaliser.kind_ = Cmvn::global;
  normaliser.statistics_ = std::move(statistics);
  return normaliser;
}

std::vector<int64_t> Normaliser::floored() const { return statistics_ ? statistics_->floored : std::vector<int64_t>(); }

void Normaliser::apply(float* frames, int64_t rows, int64_t bins) const {
  if (kind_ == Cmvn::utterance) return apply_cmvn(frames, rows, bins);
  if (kind_ == Cmvn::utterance_mean) return subtract_mean(frames, rows, bins);
  if (kind_ == Cmvn::none) return;
  if (static_cast<int64_t>(statistics_->mean.size()) != bins) {
    throw ShapeError("statistics of " + std::to_string(statistics_->mean.size()) + " bins for frames of " +
                     std::to_string(bins));
  }
  scale(frames, rows, bins, statistics_->mean.data(), statistics_->deviation.data());
}

FeatureMoments pooled(const std::vector<const FeatureMoments*>& parts) {
  FeatureMoments all;
  for (const FeatureMoments* part : parts) {
    if (all.sum.empty()) all.sum.resize(part->sum.size()), all.squares.resize(part->sum.size());
    if (part->sum.size() != all.sum.size()) throw ShapeError("moments of splits with frames of different widths");
    all.frames += part->frames;
    for (size_t b = 0; b < all.sum.size(); ++b) all.sum[b] += part->sum[b], all.squares[b] += part->squares[b];
  }
  return all;
}

void write_statistics(const std::string& path, const std::string& feature_hash, const FeatureMoments& moments) {
  h5::replace(path, [&](h5::File& file) {
    file.set_attribute("/", "format", std::string(kFormat));
    file.set_attribute("/", "feature_hash", feature_hash);
    file.set_attribute("/", "frames", moments.frames);
    const auto width = static_cast<int64_t>(moments.sum.size());
    file.write("/sum", {width}, moments.sum.data());
    file.write("/squares", {width}, moments.squares.data());
  });
}

FeatureMoments read_statistics(const std::string& path, const std::string& feature_hash, int64_t width) {
  const h5::File file = h5::File::open(path);
  if (!file.has_attribute("/", "format") || file.attribute_string("/", "format") != kFormat) {
    throw DataError(path + ": not a statistics file of tactus");
  }
  const std::string hash = file.attribute_string("/", "feature_hash");
  if (hash != feature_hash) {
    throw DataError(path + ": statistics of features " + hash + ", but the corpus has " + feature_hash +
                    "; make them from a corpus of the same features");
  }
  for (const char* name : {"/sum", "/squares"}) {
    const std::vector<int64_t> shape = file.shape(name);
    if (shape.size() != 1 || shape[0] != width) {
      throw DataError(path + ": " + name + " has " + (shape.empty() ? "no" : std::to_string(shape[0])) +
                      " numbers, frames have " + std::to_string(width));
    }
  }
  FeatureMoments moments{file.attribute_int("/", "frames"), file.read<double>("/sum"), file.read<double>("/squares")};
  Normaliser::global(moments, path);
  return moments;
}

}  // namespace tactus
