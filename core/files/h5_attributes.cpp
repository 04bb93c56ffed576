// Attributes, string values and the library's error stack.
#include <algorithm>
#include <cstring>

#include "core/files/h5_internal.h"

namespace tactus::h5 {
namespace {

herr_t visit_error(unsigned, const H5E_error2_t* error, void* text) {
  // Walking upwards begins at the innermost call, the one that knows the system's reason.
  std::string& reason = *static_cast<std::string*>(text);
  if (reason.empty() && error->desc != nullptr) reason = error->desc;
  return 0;
}

}  // namespace

void initialise() {
  static const bool done = [] {
    // At exit the library would retry to close files whose disk is full and print lines of its own. All files are
    // closed by their owners, so nothing is left for it to do.
    H5dont_atexit();
    return true;
  }();
  // The error stack belongs to the thread where the library was built for threads.
  thread_local const herr_t silenced = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  (void)done, (void)silenced;
}

std::string library_reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit_error, &text);
  const std::string mark = "error message = '";
  if (size_t begin = text.find(mark); begin != std::string::npos) {
    begin += mark.size();
    return text.substr(begin, text.find('\'', begin) - begin);
  }
  return text.empty() ? "no reason given" : text;
}

void fail(const std::string& file, const std::string& object, const std::string& what) {
  throw DataError(file + ": " + object + ": " + what + " (" + library_reason() + ")");
}

Handle half_type() {
  // 1 sign, 5 exponent (bias 15), 10 mantissa bits. Fields shrink before the size does.
  Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), 15);
  return type;
}

Handle text_type(size_t width) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), std::max<size_t>(width, 1));
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

std::vector<std::string> read_string_values(hid_t type, hid_t space, int64_t count,
                                            const std::function<herr_t(hid_t, void*)>& read, const std::string& file,
                                            const std::string& object) {
  if (H5Tget_class(type) != H5T_STRING) throw DataError(file + ": " + object + ": holds no text");
  std::vector<std::string> values;
  if (count == 0) return values;
  if (H5Tis_variable_str(type) > 0) {
    // The memory type takes the stored character set: the library does not convert between sets.
    Handle memory(H5Tcopy(type), H5Tclose);
    std::vector<char*> texts(static_cast<size_t>(count), nullptr);
    if (read(memory.get(), texts.data()) < 0) fail(file, object, "cannot read its text");
    for (char* text : texts) values.emplace_back(text == nullptr ? "" : text);
    H5Dvlen_reclaim(memory.get(), space, H5P_DEFAULT, texts.data());
    return values;
  }
  size_t width = H5Tget_size(type);
  std::string bytes(width * static_cast<size_t>(count), '\0');
  if (read(type, bytes.data()) < 0) fail(file, object, "cannot read its text");
  for (int64_t i = 0; i < count; ++i) {
    const char* begin = bytes.data() + static_cast<size_t>(i) * width;
    values.emplace_back(begin, strnlen(begin, width));
  }
  return values;
}

Handle File::open_attribute(const std::string& object, const std::string& name) const {
  if (!has_attribute(object, name)) throw DataError(path_ + ": " + object + ": has no attribute " + name);
  return own(H5Aopen(open_object(object).get(), name.c_str(), H5P_DEFAULT), H5Aclose, path_, object + "@" + name,
             "cannot open attribute");
}

std::vector<std::string> File::attributes(const std::string& object) const {
  Handle owner = open_object(object);
  std::vector<std::string> names;
  auto collect = [](hid_t, const char* name, const H5A_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  if (H5Aiterate2(owner.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0)
    fail(path_, object, "cannot list its attributes");
  return names;
}

bool File::has_attribute(const std::string& object, const std::string& name) const {
  return H5Aexists(open_object(object).get(), name.c_str()) > 0;
}

std::vector<double> File::attribute_list(const std::string& object, const std::string& name) const {
  Handle attribute = open_attribute(object, name);
  Handle space(H5Aget_space(attribute.get()), H5Sclose);
  hssize_t count = H5Sget_simple_extent_npoints(space.get());
  std::vector<double> values(count < 0 ? 0 : static_cast<size_t>(count));
  if (count != 0 && H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, values.data()) < 0)
    fail(path_, object + "@" + name, "cannot read attribute as numbers");
  return values;
}

int64_t File::attribute_int(const std::string& object, const std::string& name) const {
  Handle attribute = open_attribute(object, name);
  Handle space(H5Aget_space(attribute.get()), H5Sclose);
  int64_t value = 0;
  if (H5Sget_simple_extent_npoints(space.get()) != 1 || H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0)
    fail(path_, object + "@" + name, "cannot read attribute as one integer");
  return value;
}

double File::attribute_real(const std::string& object, const std::string& name) const {
  std::vector<double> values = attribute_list(object, name);
  if (values.size() != 1) fail(path_, object + "@" + name, "cannot read attribute as one number");
  return values[0];
}

std::string File::attribute_string(const std::string& object, const std::string& name) const {
  Handle attribute = open_attribute(object, name);
  Handle space(H5Aget_space(attribute.get()), H5Sclose);
  Handle type(H5Aget_type(attribute.get()), H5Tclose);
  auto read = [&](hid_t memory, void* to) { return H5Aread(attribute.get(), memory, to); };
  std::vector<std::string> values = read_string_values(
      type.get(), space.get(), H5Sget_simple_extent_npoints(space.get()), read, path_, object + "@" + name);
  if (values.size() != 1) fail(path_, object + "@" + name, "cannot read attribute as one text");
  return values[0];
}

void File::set_scalar_attribute(const std::string& object, const std::string& name, int64_t type, const void* value) {
  Handle owner = open_object(object);
  if (H5Aexists(owner.get(), name.c_str()) > 0) H5Adelete(owner.get(), name.c_str());
  Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  Handle attribute(H5Acreate2(owner.get(), name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (attribute.get() < 0 || H5Awrite(attribute.get(), type, value) < 0)
    throw Error(path_ + ": " + object + "@" + name + ": cannot write attribute: " + library_reason());
}

void File::set_attribute(const std::string& object, const std::string& name, int64_t value) {
  set_scalar_attribute(object, name, H5T_NATIVE_INT64, &value);
}

void File::set_attribute(const std::string& object, const std::string& name, double value) {
  set_scalar_attribute(object, name, H5T_NATIVE_DOUBLE, &value);
}

void File::set_attribute(const std::string& object, const std::string& name, const std::string& value) {
  set_scalar_attribute(object, name, text_type(value.size()).get(), value.c_str());
}

}  // namespace tactus::h5
