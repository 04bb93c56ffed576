#include "core/tensor.h"

#include "core/allocator.h"

namespace tactus {

std::string to_string(Device d) { return d == Device::cpu ? "cpu" : "cuda"; }

std::string to_string(MemoryTag tag) {
  switch (tag) {
    case MemoryTag::weights:
      return "weights";
    case MemoryTag::gradients:
      return "gradients";
    case MemoryTag::optimiser:
      return "optimiser";
    case MemoryTag::activations:
      return "activations";
    case MemoryTag::cache:
      return "cache";
    case MemoryTag::workspace:
      return "workspace";
  }
  return "?";
}

Shape::Shape(std::initializer_list<int64_t> extents) {
  if (extents.size() > extents_.size()) throw ShapeError("a tensor has at most 4 extents");
  for (int64_t e : extents) {
    if (e < 0) throw ShapeError("a tensor's extent cannot be negative (" + std::to_string(e) + ")");
    extents_[rank_++] = e;
  }
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= extents_[i];
  return n;
}

std::string Shape::to_string() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(extents_[i]);
  return s + "]";
}

Storage::Storage(std::shared_ptr<Allocator> allocator, int64_t bytes, MemoryTag tag)
    : allocator_(std::move(allocator)), data_(allocator_->allocate(bytes, tag)), bytes_(bytes), tag_(tag) {}

Storage::~Storage() { allocator_->release(data_, bytes_, tag_); }

int64_t Tensor::cols() const { return shape_.rank() == 0 ? 1 : shape_[shape_.rank() - 1]; }

int64_t Tensor::rows() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < shape_.rank(); ++i) n *= shape_[i];
  return n;
}

Tensor Tensor::reinterpret(DType dtype, Shape shape) const {
  const int64_t before = offset_ * size_of(dtype_);
  if (shape.elements() * size_of(dtype) > bytes() || before % size_of(dtype) != 0) {
    throw ShapeError("reinterpret: " + std::to_string(bytes()) + " bytes cannot hold " + shape.to_string() + " of " +
                     to_string(dtype));
  }
  return Tensor(storage_, device_, dtype, shape, before / size_of(dtype));
}

Tensor Tensor::view(Shape shape) const {
  if (shape.elements() != elements()) {
    throw ShapeError("view: " + shape_.to_string() + " cannot be seen as " + shape.to_string());
  }
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || begin > end || end > shape_[0]) {
    throw ShapeError("slice: [" + std::to_string(begin) + ", " + std::to_string(end) + ") of " + shape_.to_string());
  }
  int64_t inner = 1;
  for (int i = 1; i < shape_.rank(); ++i) inner *= shape_[i];
  Tensor t = *this;
  t.offset_ += begin * inner;
  switch (shape_.rank()) {
    case 1:
      t.shape_ = {end - begin};
      break;
    case 2:
      t.shape_ = {end - begin, shape_[1]};
      break;
    case 3:
      t.shape_ = {end - begin, shape_[1], shape_[2]};
      break;
    default:
      t.shape_ = {end - begin, shape_[1], shape_[2], shape_[3]};
      break;
  }
  return t;
}

void Tensor::check_type(DType wanted) const {
  if (!storage_) throw ShapeError("use of an undefined tensor");
  if (wanted != dtype_) {
    throw ShapeError("tensor " + shape_.to_string() + " holds " + to_string(dtype_) + ", asked for " +
                     to_string(wanted));
  }
}

}  // namespace tactus
