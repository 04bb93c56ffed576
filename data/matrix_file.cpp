#include "data/matrix_file.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "data/matrix/ark.h"
#include "data/matrix/hdf5_matrix.h"
#include "data/matrix/npy.h"

namespace tactus {
namespace {

using matrix::FileRange;
using matrix::MatrixPart;
using matrix::PartOfTime;

MatrixPart read_part(const MediaRef& media, const PartOfTime& time) {
  switch (media.kind) {
    case MediaRef::Kind::npy: {
      // Without a length, what follows the array may be another one's.
      const bool may_go_on = media.offset >= 0 && media.bytes < 0;
      return read_npy(FileRange(media.path, media.offset, media.bytes, media.to_string()), time, may_go_on);
    }
    case MediaRef::Kind::ark:
      return read_ark(FileRange(media.path, media.offset, media.bytes, media.to_string()), time);
    case MediaRef::Kind::hdf5:
      return read_hdf5(media, time);
    default:
      throw DataError(media.to_string() + ": is no feature matrix; expected a NumPy, Kaldi or HDF5 file");
  }
}

void check_finite(const MatrixPart& part, const MediaRef& media) {
  const FeatureMatrix& m = part.matrix;
  for (size_t i = 0; i < m.values.size(); ++i) {
    if (std::isfinite(m.values[i])) continue;
    const int64_t k = static_cast<int64_t>(i), row_size = m.layers * m.width;
    const std::string layer = m.layers > 1 ? ", layer " + std::to_string(k % row_size / m.width) : "";
    throw DataError(media.to_string() + ": row " + std::to_string(part.first_row + k / row_size) + layer + ", column " +
                    std::to_string(k % m.width) + " (from 0) is not a finite 32-bit number");
  }
}

}  // namespace

FeatureMatrix read_feature_matrix(const MediaRef& media, double frames_per_second) {
  if (media.speed != 1)
    throw DataError(media.to_string() + ": speed can be changed of audio only, this is a feature matrix");
  MatrixPart part = read_part(media, {media.start_seconds, media.duration_seconds, frames_per_second});
  check_finite(part, media);
  return std::move(part.matrix);
}

}  // namespace tactus
