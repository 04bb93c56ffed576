// Datasets whose values are read and written around the library, by their place in the file.
#include <array>

#include "core/files/h5_internal.h"

namespace tactus::h5 {
namespace {

constexpr std::array kStored = {Stored::u8,  Stored::u16, Stored::i32, Stored::i64,
                                Stored::f16, Stored::f32, Stored::f64};

Handle file_type(Stored type) {
  switch (type) {
    case Stored::u8:
      return Handle(H5Tcopy(H5T_STD_U8LE), H5Tclose);
    case Stored::u16:
      return Handle(H5Tcopy(H5T_STD_U16LE), H5Tclose);
    case Stored::i32:
      return Handle(H5Tcopy(H5T_STD_I32LE), H5Tclose);
    case Stored::i64:
      return Handle(H5Tcopy(H5T_STD_I64LE), H5Tclose);
    case Stored::f16:
      return half_type();
    case Stored::f32:
      return Handle(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    case Stored::f64:
      return Handle(H5Tcopy(H5T_IEEE_F64LE), H5Tclose);
  }
  return Handle();
}

}  // namespace

int64_t size_of(Stored type) {
  switch (type) {
    case Stored::u8:
      return 1;
    case Stored::u16:
    case Stored::f16:
      return 2;
    case Stored::i32:
    case Stored::f32:
      return 4;
    case Stored::i64:
    case Stored::f64:
      return 8;
  }
  return 0;
}

int64_t RawDataset::elements() const {
  int64_t n = 1;
  for (int64_t e : shape) n *= e;
  return n;
}

int64_t File::make_contiguous(const std::string& name, Stored type, const std::vector<int64_t>& shape) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  Handle space = own(H5Screate_simple(static_cast<int>(shape.size()), extents.data(), nullptr), H5Sclose, path_, name,
                     "cannot describe its shape");
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);
  H5Pset_layout(properties.get(), H5D_CONTIGUOUS);
  H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
  // Filling what is written later anyway would double the writing.
  H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
  Handle dataset = make_dataset(name, file_type(type).get(), space.get(), properties.get());
  const haddr_t offset = H5Dget_offset(dataset.get());
  return offset == HADDR_UNDEF ? -1 : static_cast<int64_t>(offset);
}

bool File::is_contiguous(const std::string& name) const {
  Handle dataset = open_dataset(name);
  Handle properties = own(H5Dget_create_plist(dataset.get()), H5Pclose, path_, name, "cannot read its layout");
  return H5Pget_layout(properties.get()) == H5D_CONTIGUOUS;
}

RawDataset File::raw(const std::string& name, int64_t file_bytes) const {
  if (!is_contiguous(name)) fail(path_, name, "is not stored contiguously");
  Handle dataset = open_dataset(name);
  RawDataset raw{};
  raw.shape = shape(name);
  Handle type = own(H5Dget_type(dataset.get()), H5Tclose, path_, name, "cannot read its type");
  bool known = false;
  for (Stored candidate : kStored) {
    if (H5Tequal(type.get(), file_type(candidate).get()) <= 0) continue;
    raw.type = candidate, known = true;
  }
  if (!known) fail(path_, name, "holds numbers of an unexpected type");
  int64_t bytes = size_of(raw.type);
  for (int64_t e : raw.shape) {
    if (e < 0 || __builtin_mul_overflow(bytes, e, &bytes)) fail(path_, name, "has an impossible shape");
  }
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) {
    if (bytes > 0) fail(path_, name, "has no values");
    return raw;
  }
  raw.offset = static_cast<int64_t>(offset);
  if (raw.offset < 0 || raw.offset > file_bytes || bytes > file_bytes - raw.offset)
    throw DataError(path_ + ": " + name + ": reaches beyond the end of the file; it is damaged or was cut short");
  return raw;
}

}  // namespace tactus::h5
