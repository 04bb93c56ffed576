// PNG pictures, through libpng where the build has it (TACTUS_WITH_PNG).
#pragma once

#include <cstdint>
#include <string>

namespace tactus {

/// Grey pictures, row by row, a byte each.
struct GreyPicture {
  int64_t rows = 0, columns = 0;
  std::string pixels;
};
constexpr int64_t kMaxPngSide = 1024;

/// ConfigError naming `path` in a build without libpng: call it before work begins.
void require_png(const std::string& path);
/// Colours become grey, transparency black. DataError when the file is damaged or a side exceeds kMaxPngSide.
GreyPicture read_png_grey(const std::string& path);

}  // namespace tactus
