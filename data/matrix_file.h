// Feature matrices in other programs' files: NumPy arrays, Kaldi archives, HDF5 datasets.
#pragma once

#include <cstdint>
#include <vector>

#include "data/item.h"

namespace tactus {

/// [rows, layers, width], row by row. layers is 1 for plain matrices.
struct FeatureMatrix {
  int64_t rows = 0, layers = 1, width = 0;
  std::vector<float> values;
};

/// Reads the matrix that `media` (npy, ark or hdf5) points to; of a part of a recording only its rows, at
/// `frames_per_second`. Thread-safe. DataError naming media.to_string() for anything damaged, cut short, of another
/// type, or with values that are not finite; nothing is allocated that the file's size cannot justify.
FeatureMatrix read_feature_matrix(const MediaRef& media, double frames_per_second = 100);

}  // namespace tactus
