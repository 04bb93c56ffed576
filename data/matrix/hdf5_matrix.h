// Matrices in HDF5 files.
#pragma once

#include "data/item.h"
#include "data/matrix/matrix_source.h"

namespace tactus::matrix {

/// Reads dataset [rows, width] or [rows, layers, width] of any float or integer type. The calls of all threads are
/// serialised, because the HDF5 library is not thread-safe.
MatrixPart read_hdf5(const MediaRef& media, const PartOfTime& part);

}  // namespace tactus::matrix
