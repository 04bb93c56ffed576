// Shared by the tests of data/matrix/ and data/matrix_file.h.
#pragma once

#include <bit>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "data/matrix_file.h"
#include "tests/data/data_test_util.h"

namespace tactus::matrix_test {

inline std::string fixture(const std::string& name) {
  return std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/" + name;
}

inline std::string bytes_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The bytes of a number, little endian.
template <class T>
std::string packed(T value) {
  std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
  return std::endian::native == std::endian::big ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
}
template <class T>
std::string packed(const std::vector<T>& values) {
  std::string bytes;
  for (T value : values) bytes += packed(value);
  return bytes;
}

/// A NumPy file of version 1.0.
inline std::string npy_bytes(const std::string& header, const std::string& data) {
  return std::string("\x93NUMPY\x01\x00", 8) + packed(static_cast<uint16_t>(header.size() + 1)) + header + "\n" + data;
}
inline std::string npy_header(const std::string& type, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

inline MediaRef media_of(MediaRef::Kind kind, const std::string& path, int64_t offset = -1, int64_t bytes = -1) {
  MediaRef media;
  media.kind = kind, media.path = path, media.offset = offset, media.bytes = bytes;
  return media;
}

class MatrixTest : public FolderTest {
 protected:
  /// What reading a whole file of these bytes says.
  std::string complaint(MediaRef::Kind kind, const std::string& bytes) const {
    const std::string file = write("bad", bytes);
    const std::string message = message_of<DataError>([&] { read_feature_matrix(media_of(kind, file)); });
    EXPECT_EQ(message.find(file + ": "), 0u) << message;
    return message.substr(std::min(message.size(), file.size() + 2));
  }
};

}  // namespace tactus::matrix_test
