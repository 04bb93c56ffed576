#include "data/matrix/hdf5_matrix.h"

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files/h5.h"

namespace tactus::matrix {
namespace {

/// More than any filter of HDF5 can gain: deflate reaches 1032, and a value takes a byte or more before it.
constexpr int64_t kMostValuesPerByte = 1100;

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// A header may promise anything; the values must have a place in the file.
void check_size(const h5::File& file, const MediaRef& media, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count = checked_product(count, extent);
  const std::string where = media.to_string() + ": dataset of shape " + text_of(shape);
  if (count == 0) throw DataError(where + " holds no values");
  const int64_t file_bytes = static_cast<int64_t>(std::filesystem::file_size(media.path));
  const int64_t per_byte = file.is_contiguous(media.dataset) ? 1 : kMostValuesPerByte;
  const bool fits = count >= 0 && count / per_byte <= file_bytes;
  if (!fits) throw DataError(where + " does not fit into a file of " + std::to_string(file_bytes) + " bytes; damaged");
}

}  // namespace

MatrixPart read_hdf5(const MediaRef& media, const PartOfTime& part) {
  if (media.dataset.empty()) throw DataError(media.to_string() + ": no dataset is named; expected FILE:DATASET");
  // The library keeps state for the whole process, so one lock for the whole process is what it needs.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const h5::File file = h5::File::open(media.path);
  const std::vector<int64_t> shape = file.shape(media.dataset);
  if (shape.size() != 2 && shape.size() != 3) {
    throw DataError(media.to_string() + ": dataset of shape " + text_of(shape) +
                    ", expected [frames, width] or [frames, layers, width]");
  }
  file.stored_type(media.dataset);  // refuses what holds no numbers
  check_size(file, media, shape);
  const auto [begin, end] = part.rows_of(shape[0], media.to_string());
  MatrixPart result;
  result.first_row = begin;
  result.matrix.rows = end - begin;
  result.matrix.layers = shape.size() == 3 ? shape[1] : 1;
  result.matrix.width = shape.back();
  result.matrix.values = file.read_rows<float>(media.dataset, begin, end);
  return result;
}

}  // namespace tactus::matrix
