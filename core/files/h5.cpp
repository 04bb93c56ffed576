#include "core/files/h5.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/files/files.h"
#include "core/files/h5_internal.h"

namespace tactus::h5 {
namespace {

constexpr hsize_t kMaxRank = 32;

/// Identifiers of objects that were opened for one call.
Handle open_space(hid_t dataset, const std::string& file, const std::string& name) {
  return own(H5Dget_space(dataset), H5Sclose, file, name, "cannot read its shape");
}

std::vector<int64_t> extents_of(hid_t space, const std::string& file, const std::string& name) {
  hsize_t extents[kMaxRank];
  int rank = H5Sget_simple_extent_dims(space, extents, nullptr);
  if (rank < 0) fail(file, name, "cannot read its shape");
  return std::vector<int64_t>(extents, extents + rank);
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return n;
}

Handle make_space(const std::vector<int64_t>& shape, const std::string& file, const std::string& name) {
  std::vector<hsize_t> extents(shape.begin(), shape.end());
  hid_t id =
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), extents.data(), nullptr);
  return own(id, H5Sclose, file, name, "cannot describe its shape");
}

/// Selects rows [begin, begin + rows) in `space` and returns a memory space of that size.
Handle select_rows(hid_t space, const std::vector<int64_t>& shape, int64_t begin, int64_t rows, const std::string& file,
                   const std::string& name) {
  std::vector<hsize_t> start(shape.size(), 0), count(shape.begin(), shape.end());
  start[0] = static_cast<hsize_t>(begin), count[0] = static_cast<hsize_t>(rows);
  if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0)
    fail(file, name, "cannot select rows");
  return own(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose, file, name,
             "cannot select rows");
}

/// Buffer for `count` values; a shape that memory cannot hold is a sign of a damaged file.
template <class T>
std::vector<T> make_buffer(int64_t count, const std::string& file, const std::string& name) {
  try {
    return std::vector<T>(static_cast<size_t>(count));
  } catch (const std::exception&) {
    throw DataError(file + ": " + name + ": claims " + std::to_string(count) + " values, more than memory holds");
  }
}

/// Refuses a shape that the file cannot hold, before memory is taken for it. Shapes are bounded by what deflate can do
/// at best, because chunks may be compressed; small ones may hold fill values alone.
void check_claim(hid_t dataset, int64_t count, const std::string& file, const std::string& name) {
  constexpr int64_t kSmall = 1 << 26, kBestRatio = 1032;
  const Handle type = own(H5Dget_type(dataset), H5Tclose, file, name, "cannot read its type");
  const Handle whole = own(H5Iget_file_id(dataset), H5Fclose, file, name, "cannot find its file");
  hsize_t file_bytes = 0;
  if (H5Fget_filesize(whole.get(), &file_bytes) < 0) fail(file, name, "cannot read the size of its file");
  int64_t bytes = 0;
  const bool huge = __builtin_mul_overflow(count, static_cast<int64_t>(H5Tget_size(type.get())), &bytes);
  if (huge || (bytes > kSmall && bytes / kBestRatio > static_cast<int64_t>(file_bytes))) {
    throw DataError(file + ": " + name + ": claims " + std::to_string(count) + " values, more than a file of " +
                    std::to_string(file_bytes) + " bytes can hold; it is damaged");
  }
}

/// Creation properties of a file, group or dataset without time stamps: the same content gives the same bytes.
Handle creation(hid_t kind) {
  Handle properties(H5Pcreate(kind), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);
  // Links and attributes stay in the object's header, which has a checksum. Beyond some number the library would move
  // them to heaps without one, where it follows damaged references.
  constexpr unsigned kMost = 65535, kLeast = 65000;
  if (kind != H5P_DATASET_CREATE) H5Pset_link_phase_change(properties.get(), kMost, kLeast);
  H5Pset_attr_phase_change(properties.get(), kMost, kLeast);
  return properties;
}

std::string trimmed(const std::string& name) {
  size_t begin = name.find_first_not_of('/');
  return begin == std::string::npos ? "" : name.substr(begin);
}

}  // namespace

Handle& Handle::operator=(Handle&& o) noexcept {
  std::swap(id_, o.id_);
  std::swap(close_, o.close_);
  return *this;
}

void Handle::reset() {
  if (id_ >= 0 && close_ != nullptr) close_(id_);
  id_ = -1;
}

File File::open(const std::string& path) {
  initialise();
  // The system's own message for what is missing or unreadable is clearer than the library's.
  FileDescriptor::open_for_reading(path);
  Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, path, "/", "cannot open");
  // Finished files never change (they are replaced as a whole), and some network file systems know no locks.
  H5Pset_file_locking(access.get(), false, true);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (id < 0) throw DataError(path + ": not a readable HDF5 file, damaged or cut short (" + library_reason() + ")");
  return File(std::make_shared<Handle>(id, H5Fclose), path);
}

File File::create(const std::string& path, const std::string& shown) {
  initialise();
  const std::string& name = shown.empty() ? path : shown;
  Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, name, "/", "cannot create");
  H5Pset_file_locking(access.get(), false, true);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  // This format keeps checksums of its metadata, so that a damaged file is an error and not a wild pointer in the
  // library.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST);
  // Mapped values are read in place.
  H5Pset_alignment(access.get(), 1, 8);
  // Named, because closing any identifier clears the reason of a failure.
  Handle properties = creation(H5P_FILE_CREATE);
  hid_t id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, properties.get(), access.get());
  if (id < 0) throw Error(name + ": cannot create: " + library_reason());
  return File(std::make_shared<Handle>(id, H5Fclose), name);
}

int64_t File::id() const {
  if (file_ == nullptr || file_->get() < 0) throw Error(path_ + ": used after it was closed");
  return file_->get();
}

bool File::exists(const std::string& name) const {
  // The library wants every part of a path tested before the next.
  std::string path = trimmed(name);
  if (path.empty()) return true;
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    if (H5Lexists(id(), path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

Handle File::open_object(const std::string& name) const {
  std::string path = trimmed(name);
  if (!exists(name)) throw DataError(path_ + ": " + name + ": no such object");
  return own(H5Oopen(id(), path.empty() ? "/" : path.c_str(), H5P_DEFAULT), H5Oclose, path_, name, "cannot open");
}

Handle File::open_dataset(const std::string& name) const {
  if (kind(name) != ObjectKind::dataset) throw DataError(path_ + ": " + name + ": is a group, expected a dataset");
  return own(H5Dopen2(id(), trimmed(name).c_str(), H5P_DEFAULT), H5Dclose, path_, name, "cannot open");
}

ObjectKind File::kind(const std::string& name) const {
  Handle object = open_object(name);
  switch (H5Iget_type(object.get())) {
    case H5I_GROUP:
      return ObjectKind::group;
    case H5I_DATASET:
      return ObjectKind::dataset;
    default:
      fail(path_, name, "is neither a group nor a dataset");
  }
}

std::vector<std::string> File::list(const std::string& group) const {
  Handle object = open_object(group);
  H5G_info_t info;
  if (H5Gget_info(object.get(), &info) < 0) fail(path_, group, "is not a group");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    ssize_t length = H5Lget_name_by_idx(object.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
    if (length < 0) fail(path_, group, "cannot list its members");
    std::string name(static_cast<size_t>(length) + 1, '\0');
    H5Lget_name_by_idx(object.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT);
    name.pop_back();
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void File::make_group(const std::string& name) {
  const std::string path = trimmed(name);
  if (size_t end = path.rfind('/'); end != std::string::npos && !exists(path.substr(0, end)))
    make_group(path.substr(0, end));
  Handle properties = creation(H5P_GROUP_CREATE);
  hid_t group = H5Gcreate2(id(), path.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT);
  if (group < 0) throw Error(path_ + ": " + name + ": cannot create group: " + library_reason());
  H5Gclose(group);
}

std::vector<int64_t> File::shape(const std::string& name) const {
  Handle dataset = open_dataset(name);
  return extents_of(open_space(dataset.get(), path_, name).get(), path_, name);
}

DType File::stored_type(const std::string& name) const {
  Handle dataset = open_dataset(name);
  Handle type = own(H5Dget_type(dataset.get()), H5Tclose, path_, name, "cannot read its type");
  switch (H5Tget_class(type.get())) {
    case H5T_FLOAT:
      return H5Tget_size(type.get()) > 4 ? DType::f64 : DType::f32;
    case H5T_INTEGER:
    case H5T_ENUM:
      return DType::i64;
    default:
      fail(path_, name, "holds no numbers");
  }
}

template <class T>
std::vector<T> File::read(const std::string& name) const {
  Handle dataset = open_dataset(name);
  Handle space = open_space(dataset.get(), path_, name);
  hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count < 0) fail(path_, name, "cannot read its shape");
  check_claim(dataset.get(), count, path_, name);
  std::vector<T> values = make_buffer<T>(count, path_, name);
  if (count == 0) return values;
  if (H5Dread(dataset.get(), native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    fail(path_, name, "cannot read its values as numbers");
  return values;
}

template <class T>
std::vector<T> File::read_rows(const std::string& name, int64_t begin, int64_t end) const {
  Handle dataset = open_dataset(name);
  Handle space = open_space(dataset.get(), path_, name);
  std::vector<int64_t> shape = extents_of(space.get(), path_, name);
  if (shape.empty() || begin < 0 || begin > end || end > shape[0]) {
    throw DataError(path_ + ": " + name + ": rows " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                    std::to_string(shape.empty() ? 0 : shape[0]) + " were asked for");
  }
  shape[0] = end - begin;
  check_claim(dataset.get(), product(shape), path_, name);
  std::vector<T> values = make_buffer<T>(product(shape), path_, name);
  if (values.empty()) return values;
  Handle memory = select_rows(space.get(), shape, begin, end - begin, path_, name);
  if (H5Dread(dataset.get(), native_type<T>(), memory.get(), space.get(), H5P_DEFAULT, values.data()) < 0)
    fail(path_, name, "cannot read its rows as numbers");
  return values;
}

std::vector<std::string> File::read_strings(const std::string& name) const {
  Handle dataset = open_dataset(name);
  Handle space = open_space(dataset.get(), path_, name);
  Handle type = own(H5Dget_type(dataset.get()), H5Tclose, path_, name, "cannot read its type");
  hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count < 0) fail(path_, name, "cannot read its shape");
  check_claim(dataset.get(), count, path_, name);
  auto read = [&](hid_t memory, void* to) { return H5Dread(dataset.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to); };
  return read_string_values(type.get(), space.get(), count, read, path_, name);
}

std::string File::read_string(const std::string& name) const {
  std::vector<std::string> values = read_strings(name);
  if (values.size() != 1) {
    throw DataError(path_ + ": " + name + ": holds " + std::to_string(values.size()) + " strings, expected one");
  }
  return values[0];
}

Handle File::make_dataset(const std::string& name, int64_t type, int64_t space, int64_t properties) {
  const std::string path = trimmed(name);
  if (size_t end = path.rfind('/'); end != std::string::npos && !exists(path.substr(0, end)))
    make_group(path.substr(0, end));
  hid_t id = H5Dcreate2(this->id(), path.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  if (id < 0) throw Error(path_ + ": " + name + ": cannot create dataset: " + library_reason());
  return Handle(id, H5Dclose);
}

void File::write_values(const std::string& name, int64_t file_type, int64_t memory_type,
                        const std::vector<int64_t>& shape, const void* values) {
  Handle space = make_space(shape, path_, name);
  Handle dataset = make_dataset(name, file_type, space.get(), creation(H5P_DATASET_CREATE).get());
  if (product(shape) == 0) return;
  if (H5Dwrite(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
    throw Error(path_ + ": " + name + ": cannot write: " + library_reason());
}

template <class T>
void File::write(const std::string& name, const std::vector<int64_t>& shape, const T* values) {
  write_values(name, native_type<T>(), native_type<T>(), shape, values);
}

void File::write_half(const std::string& name, const std::vector<int64_t>& shape, const float* values) {
  write_values(name, half_type().get(), H5T_NATIVE_FLOAT, shape, values);
}

void File::make_growing(const std::string& name, int64_t columns, bool half, int64_t chunk_rows) {
  hsize_t now[2] = {0, static_cast<hsize_t>(columns)}, most[2] = {H5S_UNLIMITED, static_cast<hsize_t>(columns)};
  hsize_t chunk[2] = {static_cast<hsize_t>(chunk_rows), static_cast<hsize_t>(columns)};
  Handle space = own(H5Screate_simple(2, now, most), H5Sclose, path_, name, "cannot describe its shape");
  Handle properties = creation(H5P_DATASET_CREATE);
  H5Pset_chunk(properties.get(), 2, chunk);
  Handle stored = half_type();
  make_dataset(name, half ? stored.get() : H5T_IEEE_F32LE, space.get(), properties.get());
}

void File::append_rows(const std::string& name, const float* values, int64_t rows) {
  if (rows == 0) return;
  Handle dataset = open_dataset(name);
  std::vector<int64_t> shape = extents_of(open_space(dataset.get(), path_, name).get(), path_, name);
  hsize_t grown[2] = {static_cast<hsize_t>(shape[0] + rows), static_cast<hsize_t>(shape[1])};
  if (H5Dset_extent(dataset.get(), grown) < 0) throw Error(path_ + ": " + name + ": cannot grow: " + library_reason());
  Handle space = open_space(dataset.get(), path_, name);
  Handle memory = select_rows(space.get(), shape, shape[0], rows, path_, name);
  if (H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, memory.get(), space.get(), H5P_DEFAULT, values) < 0)
    throw Error(path_ + ": " + name + ": cannot write: " + library_reason());
}

void File::write_string(const std::string& name, const std::string& value) {
  Handle type = text_type(value.size());
  // A null-padded type takes exactly its width, which is at least one byte: the terminator of an empty string.
  write_values(name, type.get(), type.get(), {}, value.c_str());
}

void File::write_strings(const std::string& name, const std::vector<std::string>& values) {
  size_t width = 1;
  for (const std::string& value : values) width = std::max(width, value.size());
  std::string bytes;
  for (const std::string& value : values) {
    bytes += value;
    bytes.append(width - value.size(), '\0');
  }
  Handle type = text_type(width);
  write_values(name, type.get(), type.get(), {static_cast<int64_t>(values.size())}, bytes.data());
}

void File::flush() {
  if (H5Fflush(id(), H5F_SCOPE_LOCAL) < 0) throw Error(path_ + ": cannot write: " + library_reason());
}

void File::close() {
  flush();
  if (H5Fclose(file_->release()) < 0) throw Error(path_ + ": cannot write: " + library_reason());
}

void replace(const std::string& path, const std::function<void(File&)>& build) {
  AtomicFile target(path);
  File file = File::create(target.temporary(), path);
  build(file);
  file.close();
  target.commit();
}

#define TACTUS_H5_INSTANTIATE(T)                                                          \
  template std::vector<T> File::read<T>(const std::string&) const;                        \
  template std::vector<T> File::read_rows<T>(const std::string&, int64_t, int64_t) const; \
  template void File::write<T>(const std::string&, const std::vector<int64_t>&, const T*);
TACTUS_H5_INSTANTIATE(double)
TACTUS_H5_INSTANTIATE(float)
TACTUS_H5_INSTANTIATE(int64_t)
TACTUS_H5_INSTANTIATE(int32_t)
TACTUS_H5_INSTANTIATE(uint8_t)
#undef TACTUS_H5_INSTANTIATE

}  // namespace tactus::h5
