// HDF5 files: RAII handles over the C library, typed datasets and attributes, and atomic replacement of whole files.
//
// Errors are DataError and name the file and the object. A file that cannot be opened, is cut short or is no HDF5 file
// gives one line. The library is not thread-safe: callers serialise access, or read datasets by raw file offset.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"

namespace tactus::h5 {

/// An owned HDF5 identifier of any kind.
class Handle {
 public:
  Handle() = default;
  Handle(int64_t id, int (*close)(int64_t)) : id_(id), close_(close) {}
  Handle(Handle&& o) noexcept : id_(o.id_), close_(o.close_) { o.id_ = -1; }
  Handle& operator=(Handle&& o) noexcept;
  ~Handle() { reset(); }
  int64_t get() const { return id_; }
  void reset();
  /// Gives up ownership.
  int64_t release() { return std::exchange(id_, -1); }

 private:
  int64_t id_ = -1;
  int (*close_)(int64_t) = nullptr;
};

enum class ObjectKind { group, dataset };

/// Number types of datasets that are read and written by file offset, all little endian.
enum class Stored { u8, u16, i32, i64, f16, f32, f64 };
int64_t size_of(Stored type);

/// A dataset as it lies in the file.
struct RawDataset {
  Stored type;
  std::vector<int64_t> shape;
  int64_t offset = -1;  ///< byte of the file; -1 where it is empty
  int64_t elements() const;
};

/// A group or a dataset of an open file, or the file's root group. Copies are cheap and share the file.
class File {
 public:
  /// Opens for reading.
  static File open(const std::string& path);
  /// Creates for writing, replacing what was there. Prefer replace() below for files others may read. Messages name
  /// `shown` instead of `path` where given.
  static File create(const std::string& path, const std::string& shown = "");

  const std::string& path() const { return path_; }
  bool exists(const std::string& name) const;
  ObjectKind kind(const std::string& name) const;
  /// Names of the members of a group ("/" for the root), sorted.
  std::vector<std::string> list(const std::string& group) const;
  void make_group(const std::string& name);

  std::vector<int64_t> shape(const std::string& dataset) const;
  /// Type class of the stored numbers: f64, f32 (also 16-bit floats), i64 (any integer).
  DType stored_type(const std::string& dataset) const;
  /// Whole dataset, converted to T (double, float, int64_t, int32_t, uint8_t) by the library.
  template <class T>
  std::vector<T> read(const std::string& dataset) const;
  /// Rows [begin, end) of the first axis.
  template <class T>
  std::vector<T> read_rows(const std::string& dataset, int64_t begin, int64_t end) const;
  /// A string stored as a scalar dataset.
  std::string read_string(const std::string& dataset) const;
  std::vector<std::string> read_strings(const std::string& dataset) const;

  template <class T>
  void write(const std::string& dataset, const std::vector<int64_t>& shape, const T* values);
  /// Stores floats as IEEE 16-bit numbers.
  void write_half(const std::string& dataset, const std::vector<int64_t>& shape, const float* values);
  /// Makes a contiguous dataset with its room set aside, aligned to 8 bytes. The caller writes the values himself at
  /// the offset that is returned (-1: nothing to write), before or after close().
  int64_t make_contiguous(const std::string& dataset, Stored type, const std::vector<int64_t>& shape);
  /// A dataset of 16-bit floats (half = true) or 32-bit floats with `columns` columns that grows by append_rows.
  void make_growing(const std::string& dataset, int64_t columns, bool half, int64_t chunk_rows);
  void append_rows(const std::string& dataset, const float* values, int64_t rows);
  void write_string(const std::string& dataset, const std::string& value);
  void write_strings(const std::string& dataset, const std::vector<std::string>& values);

  std::vector<std::string> attributes(const std::string& object) const;
  bool has_attribute(const std::string& object, const std::string& name) const;
  int64_t attribute_int(const std::string& object, const std::string& name) const;
  double attribute_real(const std::string& object, const std::string& name) const;
  std::string attribute_string(const std::string& object, const std::string& name) const;
  std::vector<double> attribute_list(const std::string& object, const std::string& name) const;
  void set_attribute(const std::string& object, const std::string& name, int64_t value);
  void set_attribute(const std::string& object, const std::string& name, double value);
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);

  /// Whether a dataset lies in one piece, as its shape says, and not in compressed or padded chunks.
  bool is_contiguous(const std::string& dataset) const;
  /// Where the values of a contiguous dataset lie: lets threads read them with pread or through a mapping, around the
  /// library's global lock. DataError when it is stored otherwise, or reaches beyond `file_bytes`.
  RawDataset raw(const std::string& dataset, int64_t file_bytes) const;
  /// Writes all buffers to the file system.
  void flush();
  /// Flushes and closes for all copies of this File; a failure (full disk) is an Error, which the destructor would
  /// swallow.
  void close();

 private:
  File(std::shared_ptr<Handle> file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  int64_t id() const;
  Handle open_dataset(const std::string& name) const;
  Handle open_object(const std::string& name) const;
  Handle open_attribute(const std::string& object, const std::string& name) const;
  Handle make_dataset(const std::string& name, int64_t type, int64_t space, int64_t properties);
  void write_values(const std::string& name, int64_t file_type, int64_t memory_type, const std::vector<int64_t>& shape,
                    const void* values);
  void set_scalar_attribute(const std::string& object, const std::string& name, int64_t type, const void* value);

  std::shared_ptr<Handle> file_;
  std::string path_;
};

/// Writes a whole file atomically: `build` fills it under a temporary name, then it is flushed to disk and renamed to
/// `path`. When anything fails nothing is left behind and an older file of that name is untouched.
void replace(const std::string& path, const std::function<void(File&)>& build);

}  // namespace tactus::h5
