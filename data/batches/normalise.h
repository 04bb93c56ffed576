// Normalisation of feature matrices [frames, bins] at load.
//
// Everything is computed in double in a fixed order, each bin with sums of its own over the frames in their order. The
// sums over 16-bit features are exact, so that the results are bitwise the same on every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/corpus/corpus.h"

namespace tactus {

/// Utterance mean and variance normalisation, in place: per bin (x - mean) / sqrt(max(E[x^2] - mean^2, 1e-10)).
void apply_cmvn(float* frames, int64_t rows, int64_t bins);
/// Utterance mean normalisation, in place: per bin x - mean.
void subtract_mean(float* frames, int64_t rows, int64_t bins);

enum class Cmvn {
  none,            ///< raw features
  utterance,       ///< mean 0 and variance 1 over each utterance
  utterance_mean,  ///< mean 0 over each utterance
  global           ///< mean 0 and variance 1 over the statistics of a corpus
};
/// ConfigError unless `name` is one of these.
Cmvn cmvn_from_string(const std::string& name);

/// A kind of normalisation with what it needs. Copies are cheap; may be used from any thread.
class Normaliser {
 public:
  /// Any kind but global.
  explicit Normaliser(Cmvn kind = Cmvn::utterance);
  /// By the mean and the deviation of `moments`. A variance below 1e-10 counts as 1, so that a constant bin is only
  /// centred; such bins are counted in floored(). DataError naming `where` for moments of no frames or that are not
  /// finite.
  static Normaliser global(const FeatureMoments& moments, const std::string& where);

  /// In place. ShapeError when global statistics have another width.
  void apply(float* frames, int64_t rows, int64_t bins) const;
  Cmvn kind() const { return kind_; }
  /// Bins whose variance was too small.
  std::vector<int64_t> floored() const;

 private:
  struct Statistics {
    std::vector<double> mean, deviation;
    std::vector<int64_t> floored;
  };
  Cmvn kind_;
  std::shared_ptr<const Statistics> statistics_;
};

/// Sums moments of several splits. ShapeError when their widths differ.
FeatureMoments pooled(const std::vector<const FeatureMoments*>& parts);

/// A statistics file: HDF5 with attributes format ("tactus statistics"), feature_hash and frames, and the datasets sum
/// and squares, f64 [width]. Written atomically.
void write_statistics(const std::string& path, const std::string& feature_hash, const FeatureMoments& moments);
/// DataError naming the file when it is missing, damaged, of another kind, made of features with another hash, or has
/// not `width` numbers.
FeatureMoments read_statistics(const std::string& path, const std::string& feature_hash, int64_t width);

}  // namespace tactus
