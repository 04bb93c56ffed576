#include "core/context.h"

#include <omp.h>

#if defined(TACTUS_WITH_CUDA)
#include "core/cuda.h"
#endif

namespace tactus {

void no_kernel_for(Device device, DType dtype) {
  throw ConfigError("no kernels for " + to_string(dtype) + " on " + to_string(device) +
                    (device == Device::cpu ? ": the CPU computes in f32 or f64" : ": CUDA computes in f32 or bf16"));
}

Context Context::cpu(int threads, int64_t memory_limit) {
  Context c;
  c.threads_ = threads > 0 ? threads : omp_get_num_procs();
  c.allocator_ = Allocator::make(Device::cpu, 0, memory_limit);
  return c;
}

#if !defined(TACTUS_WITH_CUDA)
struct CudaHandles {};
bool Context::cuda_available() { return false; }
Context Context::cuda(int, int64_t) {
  throw ConfigError("this build of tactus has no CUDA back end: use --device cpu, or build with -DTACTUS_CUDA=ON");
}
std::string Context::device_name() const { return "CPU, " + std::to_string(threads_) + " threads"; }
void Context::copy_in(const Tensor& to, const void* from) const {
  if (to.bytes()) std::memcpy(to.raw(), from, static_cast<size_t>(to.bytes()));
}
void Context::copy_out(void* to, const Tensor& from) const {
  if (from.bytes()) std::memcpy(to, from.raw(), static_cast<size_t>(from.bytes()));
}
void Context::fill_zero(const Tensor& t) const {
  if (t.bytes()) std::memset(t.raw(), 0, static_cast<size_t>(t.bytes()));
}
void Context::synchronize() const {}
#endif

Tensor Context::empty(Shape shape, DType dtype, MemoryTag tag) const {
  auto storage = std::make_shared<Storage>(allocator_, shape.elements() * size_of(dtype), tag);
  return Tensor(std::move(storage), device_, dtype, shape);
}

Tensor Context::zeros(Shape shape, DType dtype, MemoryTag tag) const {
  Tensor t = empty(shape, dtype, tag);
  fill_zero(t);
  return t;
}

std::vector<double> Context::download_real(const Tensor& t) const {
  auto widen = [](const auto& values) {
    std::vector<double> out(values.size());
    for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<double>(static_cast<float>(values[i]));
    return out;
  };
  if (t.dtype() == DType::f64) return download<double>(t);
  if (t.dtype() == DType::f32) return widen(download<float>(t));
  if (t.dtype() == DType::bf16) return widen(download<bf16>(t));
  throw ShapeError("download_real: tensor holds " + to_string(t.dtype()));
}

Tensor Context::upload_real(const std::vector<double>& values, Shape shape, DType dtype, MemoryTag tag) const {
  if (shape.elements() != static_cast<int64_t>(values.size())) {
    throw ShapeError("upload_real: " + std::to_string(values.size()) + " values for shape " + shape.to_string());
  }
  if (dtype == DType::f64) return upload(values.data(), shape, tag);
  std::vector<float> narrow(values.begin(), values.end());
  if (dtype == DType::f32) return upload(narrow.data(), shape, tag);
  if (dtype != DType::bf16) throw ShapeError("upload_real: cannot store " + to_string(dtype));
  std::vector<bf16> half(narrow.size());
  for (size_t i = 0; i < narrow.size(); ++i) half[i] = bf16(narrow[i]);
  return upload(half.data(), shape, tag);
}

void Context::copy(const Tensor& to, const Tensor& from) const {
  if (to.bytes() != from.bytes()) {
    throw ShapeError("copy: " + from.shape().to_string() + " to " + to.shape().to_string());
  }
#if defined(TACTUS_WITH_CUDA)
  if (device_ == Device::cuda) {
    cuda_check(cudaMemcpyAsync(to.raw(), from.raw(), static_cast<size_t>(to.bytes()), cudaMemcpyDeviceToDevice,
                               stream_of(*this)),
               "copy");
    return;
  }
#endif
  if (to.bytes()) std::memcpy(to.raw(), from.raw(), static_cast<size_t>(to.bytes()));
}

}  // namespace tactus
