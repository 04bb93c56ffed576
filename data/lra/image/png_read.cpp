#include "data/lra/image/png_read.h"

#include "core/error.h"
#include "core/files/files.h"

#if defined(TACTUS_WITH_PNG)
#include <png.h>
#endif

namespace tactus {

#if defined(TACTUS_WITH_PNG)

void require_png(const std::string&) {}

GreyPicture read_png_grey(const std::string& path) {
  const std::string bytes = read_text_file(path);
  struct Image : png_image {
    Image() : png_image{} { version = PNG_IMAGE_VERSION; }
    ~Image() { png_image_free(this); }
  } image;
  const auto fail = [&](const std::string& why) -> DataError {
    return DataError(path + " (" + std::to_string(bytes.size()) + " bytes): " + why);
  };
  if (bytes.empty()) throw fail("the file is empty, expected a PNG picture");
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()))
    throw fail(std::string("no readable PNG picture: ") + image.message);
  if (image.width > kMaxPngSide || image.height > kMaxPngSide)
    throw fail(std::to_string(image.width) + " x " + std::to_string(image.height) + " pixels; at most " +
               std::to_string(kMaxPngSide) + " a side are read");
  image.format = PNG_FORMAT_GRAY;
  GreyPicture picture{image.height, image.width, std::string(PNG_IMAGE_SIZE(image), '\0')};
  const png_color black{0, 0, 0};
  if (!png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr))
    throw fail(std::string("damaged PNG picture: ") + image.message);
  return picture;
}

#else

void require_png(const std::string& path) {
  throw ConfigError(path +
                    ": this build reads no PNG pictures; build with libpng (Debian and Ubuntu: libpng-dev), or use "
                    "`tactus generate pathfinder`, whose files need no library");
}

GreyPicture read_png_grey(const std::string& path) {
  require_png(path);
  return {};
}

#endif

}  // namespace tactus
