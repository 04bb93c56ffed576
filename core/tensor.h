// Tensor: shared storage with an inline shape, always contiguous. Mat: a typed two-dimensional window with a leading
// dimension, which is what kernels take.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <string>

#include "core/dtype.h"

namespace tactus {

enum class Device : uint8_t { cpu, cuda };
std::string to_string(Device d);

/// Purpose of a block of memory; live and peak bytes are kept for each.
enum class MemoryTag : uint8_t { weights, gradients, optimiser, activations, cache, workspace };
constexpr int kMemoryTags = 6;
std::string to_string(MemoryTag tag);

/// Up to four extents. A tensor of rank 0 is a scalar with one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return extents_[i]; }
  int64_t elements() const;
  bool operator==(const Shape& o) const { return rank_ == o.rank_ && extents_ == o.extents_; }
  std::string to_string() const;  ///< "[3, 80]"

 private:
  std::array<int64_t, 4> extents_{};
  int rank_ = 0;
};

class Allocator;

/// A block of memory that goes back to its allocator with the last tensor that uses it.
class Storage {
 public:
  Storage(std::shared_ptr<Allocator> allocator, int64_t bytes, MemoryTag tag);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  void* data_;
  int64_t bytes_;
  MemoryTag tag_;
};

/// Window on memory: `rows` x `cols` values, consecutive in a row, rows `ld` >= cols values apart.
template <class T>
struct Mat {
  T* ptr = nullptr;
  int64_t rows = 0, cols = 0, ld = 0;
  TACTUS_HD T* row(int64_t r) const { return ptr + r * ld; }
  TACTUS_HD T& operator()(int64_t r, int64_t c) const { return ptr[r * ld + c]; }
  /// Columns [a, b) without a copy.
  Mat columns(int64_t a, int64_t b) const { return {ptr + a, rows, b - a, ld}; }
  Mat slice(int64_t a, int64_t b) const { return {ptr + a * ld, b - a, cols, ld}; }
  /// A template, because nvcc warns of a conversion of Mat<const T> to itself even where `requires` excludes it.
  template <class U>
    requires(!std::is_const_v<T> && std::is_same_v<U, const T>)
  operator Mat<U>() const {
    return {ptr, rows, cols, ld};
  }
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, Device device, DType dtype, Shape shape, int64_t offset = 0)
      : storage_(std::move(storage)), shape_(shape), offset_(offset), dtype_(dtype), device_(device) {}

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  /// Rank-2 reading of the shape: leading extents are rows, the last one is columns; a rank-1 tensor is one row.
  int64_t rows() const;
  int64_t cols() const;
  int64_t dim(int i) const { return shape_[i]; }

  void* raw() const { return static_cast<char*>(storage_->data()) + offset_ * size_of(dtype_); }
  template <class T>
  T* data() const {
    check_type(dtype_of<std::remove_const_t<T>>());
    return static_cast<T*>(raw());
  }
  template <class T>
  Mat<T> mat() const {
    return {data<T>(), rows(), cols(), cols()};
  }
  /// Same elements, other shape.
  Tensor view(Shape shape) const;
  /// The beginning of the memory as values of another type; for buffers that are lent to one tensor after another.
  Tensor reinterpret(DType dtype, Shape shape) const;
  /// Entries [begin, end) of the first axis.
  Tensor slice(int64_t begin, int64_t end) const;
  /// True when both look at the same storage.
  bool shares_storage(const Tensor& o) const { return storage_ == o.storage_; }

 private:
  void check_type(DType wanted) const;
  std::shared_ptr<Storage> storage_;
  Shape shape_;
  int64_t offset_ = 0;  // in elements
  DType dtype_ = DType::f32;
  Device device_ = Device::cpu;
};

}  // namespace tactus
