// Shared by the tests of data/matrix/ and data/matrix_file.h.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/matrix_file.h"

namespace tactus::matrix_test {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The message of the exception of type E that f throws, which must be one line.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    std::string text = e.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

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

/// A test with a folder of its own that is removed at the end.
class MatrixTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("tactus_" + std::string(info->test_suite_name()) + info->name() + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    // Some file systems flush a file to disk when it is emptied and written again; a new one costs nothing.
    std::filesystem::remove(path(name));
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  /// What reading a whole file of these bytes says.
  std::string complaint(MediaRef::Kind kind, const std::string& bytes) const {
    const std::string file = write("bad", bytes);
    const std::string message = message_of<DataError>([&] { read_feature_matrix(media_of(kind, file)); });
    EXPECT_EQ(message.find(file + ": "), 0u) << message;
    return message.substr(std::min(message.size(), file.size() + 2));
  }
  std::filesystem::path folder_;
};

}  // namespace tactus::matrix_test
