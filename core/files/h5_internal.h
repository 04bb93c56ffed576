// Shared by the files that implement core/files/h5.h.
#pragma once

#include <hdf5.h>

#include <functional>
#include <string>
#include <type_traits>

#include "core/files/h5.h"

namespace tactus::h5 {

static_assert(std::is_same_v<hid_t, int64_t>, "core/h5.h stores HDF5 identifiers as int64_t");

/// Silences the library's error stack and its clean-up at exit, before anything else is called in a thread.
void initialise();
/// The innermost message of the library's error stack for the call that just failed, e.g. "No space left on device".
std::string library_reason();
/// Throws DataError "FILE: OBJECT: what (reason)".
[[noreturn]] void fail(const std::string& file, const std::string& object, const std::string& what);

/// Wraps an identifier, or throws as fail() does when it is negative.
template <class Close>
Handle own(int64_t id, Close close, const std::string& file, const std::string& object, const char* what) {
  if (id < 0) fail(file, object, what);
  return Handle(id, close);
}

template <class T>
hid_t native_type();
template <>
inline hid_t native_type<double>() {
  return H5T_NATIVE_DOUBLE;
}
template <>
inline hid_t native_type<float>() {
  return H5T_NATIVE_FLOAT;
}
template <>
inline hid_t native_type<int64_t>() {
  return H5T_NATIVE_INT64;
}
template <>
inline hid_t native_type<int32_t>() {
  return H5T_NATIVE_INT32;
}
template <>
inline hid_t native_type<uint8_t>() {
  return H5T_NATIVE_UINT8;
}

/// The type of IEEE half precision, little endian.
Handle half_type();
/// UTF-8 strings of `width` bytes (at least one), padded with NUL. Strings of variable length are read but never
/// written: they lie in heaps without checksums, where the library follows damaged references.
Handle text_type(size_t width);
/// Reads `count` strings through read(memory_type, buffer), of fixed or variable length as `type` says.
std::vector<std::string> read_string_values(hid_t type, hid_t space, int64_t count,
                                            const std::function<herr_t(hid_t, void*)>& read, const std::string& file,
                                            const std::string& object);

}  // namespace tactus::h5
