// Shape checks at the entry of kernels.
#pragma once

#include "core/tensor.h"

namespace tactus {

/// Throws ShapeError "op: argument is ACTUAL, expected EXPECTED".
[[noreturn]] void shape_error(const char* op, const char* argument, const std::string& expected,
                              const std::string& actual);

/// "[3, 80]", with ", ld 96" where rows are apart.
std::string describe_extents(int64_t rows, int64_t cols, int64_t ld);

/// The extents must be rows x cols and the leading dimension at least cols. Without rows the columns do not matter.
template <class T>
void check_shape(const char* op, const char* argument, const Mat<T>& m, int64_t rows, int64_t cols) {
  const bool same = m.rows == rows && (m.cols == cols || rows == 0);
  if (!same || (m.ld < m.cols && m.rows > 1))
    shape_error(op, argument, describe_extents(rows, cols, cols), describe_extents(m.rows, m.cols, m.ld));
}

/// A condition on one argument that is not an extent of a matrix.
inline void check_value(bool ok, const char* op, const char* argument, const char* expected, int64_t actual) {
  if (!ok) shape_error(op, argument, expected, std::to_string(actual));
}

}  // namespace tactus
