#include "kernels/shared/check.h"

#include <sstream>

namespace tactus {

void shape_error(const char* op, const char* argument, const std::string& expected, const std::string& actual) {
  throw ShapeError(std::string(op) + ": " + argument + " is " + actual + ", expected " + expected);
}

std::string describe_extents(int64_t rows, int64_t cols, int64_t ld) {
  std::ostringstream text;
  text << '[' << rows << ", " << cols << ']';
  if (ld != cols) text << ", ld " << ld;
  return text.str();
}

}  // namespace tactus
