// NumPy's array files, versions 1.0 to 3.0 (numpy.lib.format, "Format Version 1.0" and following).
#pragma once

#include "data/matrix/matrix_source.h"

namespace tactus::matrix {

/// Reads an array [rows, width] or [rows, layers, width] of float16/32/64, int8/16/32 or uint8, little or big endian,
/// in C or Fortran order, that fills the range (a range to the end of the file after an offset may go on after it).
MatrixPart read_npy(const FileRange& range, const PartOfTime& part, bool may_go_on = false);

}  // namespace tactus::matrix
