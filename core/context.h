// Context: where work runs. Passed to everything, never global.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "core/allocator.h"
#include "core/tensor.h"

#if defined(TACTUS_WITH_CUDA)
struct CUstream_st;
struct cublasLtContext;
#endif

namespace tactus {

struct CudaHandles;

/// Back ends, as template arguments of kernels.
struct Cpu {};
struct Cuda {};

class Context {
 public:
  /// `threads` 0: all cores that the process may use. `memory_limit` in bytes, 0: none.
  static Context cpu(int threads = 0, int64_t memory_limit = 0);
  /// ConfigError when the build has no CUDA or the machine has no such device.
  static Context cuda(int device_index = 0, int64_t memory_limit = 0);
  static bool cuda_available();

  Device device() const { return device_; }
  int threads() const { return threads_; }
  Allocator& allocator() const { return *allocator_; }
  std::string device_name() const;

  Tensor empty(Shape shape, DType dtype, MemoryTag tag = MemoryTag::activations) const;
  Tensor zeros(Shape shape, DType dtype, MemoryTag tag = MemoryTag::activations) const;
  /// Copies host values to a tensor of this device; `values` may change after the call. On CUDA small arrays go through
  /// page-locked staging and the call does not wait for the device; from 2 MiB on it waits for the copy.
  template <class T>
  Tensor upload(const T* values, Shape shape, MemoryTag tag = MemoryTag::activations) const {
    Tensor t = empty(shape, dtype_of<T>(), tag);
    copy_in(t, values);
    return t;
  }
  template <class T>
  Tensor upload(const std::vector<T>& values, MemoryTag tag = MemoryTag::activations) const {
    return upload(values.data(), {static_cast<int64_t>(values.size())}, tag);
  }
  /// Host copy of a tensor; waits for the device.
  template <class T>
  std::vector<T> download(const Tensor& t) const {
    std::vector<T> values(t.elements());
    t.data<const T>();
    copy_out(values.data(), t);
    return values;
  }
  /// Host copy converted to double from f64, f32 or bf16.
  std::vector<double> download_real(const Tensor& t) const;
  /// Tensor of a floating type from doubles, rounded.
  Tensor upload_real(const std::vector<double>& values, Shape shape, DType dtype,
                     MemoryTag tag = MemoryTag::activations) const;
  /// Copies between tensors of this device, same bytes.
  void copy(const Tensor& to, const Tensor& from) const;
  void fill_zero(const Tensor& t) const;
  void synchronize() const;

  /// Handles of the CUDA back end; null on the CPU. Defined in core/cuda.h.
  const CudaHandles* cuda_handles() const { return handles_.get(); }

 private:
  void copy_in(const Tensor& to, const void* from) const;
  void copy_out(void* to, const Tensor& from) const;
  Device device_ = Device::cpu;
  int threads_ = 1;
  std::shared_ptr<Allocator> allocator_;
  std::shared_ptr<CudaHandles> handles_;
};

/// Calls f.template operator()<Backend, T>() for the context's device and the element type: Cpu with double or float,
/// Cuda with float or bf16. Other pairs are a ConfigError.
[[noreturn]] void no_kernel_for(Device device, DType dtype);
template <class F>
decltype(auto) dispatch(const Context& ctx, DType dtype, F&& f) {
  if (ctx.device() == Device::cpu) {
    if (dtype == DType::f64) return f.template operator()<Cpu, double>();
    if (dtype == DType::f32) return f.template operator()<Cpu, float>();
  }
#if defined(TACTUS_WITH_CUDA)
  if (ctx.device() == Device::cuda) {
    if (dtype == DType::f32) return f.template operator()<Cuda, float>();
    if (dtype == DType::bf16) return f.template operator()<Cuda, bf16>();
  }
#endif
  no_kernel_for(ctx.device(), dtype);
}

}  // namespace tactus
