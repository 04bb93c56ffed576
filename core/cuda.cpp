#if defined(TACTUS_WITH_CUDA)
#include "core/cuda.h"

#include <omp.h>

namespace tactus {

void cuda_check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw Error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(code));
}

void cublas_check(cublasStatus_t code, const char* what) {
  if (code != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(code));
}

StagingRing::~StagingRing() {
  for (Block& b : blocks_) {
    if (b.free) cudaEventDestroy(b.free);
    if (b.memory) cudaFreeHost(b.memory);
  }
}

bool StagingRing::copy(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
  if (refused_) return false;
  if (used_ + bytes > kBlockBytes) {
    cuda_check(cudaEventRecord(blocks_[at_].free, stream), "staging");
    at_ = (at_ + 1) % kBlocks;
    used_ = 0;
    if (blocks_[at_].memory) cuda_check(cudaEventSynchronize(blocks_[at_].free), "staging");
  }
  Block& block = blocks_[at_];
  if (!block.memory) {
    void* p = nullptr;
    if (cudaHostAlloc(&p, static_cast<size_t>(kBlockBytes), cudaHostAllocPortable) != cudaSuccess) {
      cudaGetLastError();  // pageable memory serves as well
      refused_ = true;
      return false;
    }
    block.memory = static_cast<char*>(p);
    cuda_check(cudaEventCreateWithFlags(&block.free, cudaEventDisableTiming), "staging");
  }
  std::memcpy(block.memory + used_, from, static_cast<size_t>(bytes));
  cuda_check(cudaMemcpyAsync(to, block.memory + used_, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream),
             "copy to device");
  used_ += (bytes + 255) / 256 * 256;
  return true;
}

CudaHandles::~CudaHandles() {
  if (blas) cublasLtDestroy(blas);
  if (stream) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
}

bool Context::cuda_available() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

Context Context::cuda(int device_index, int64_t memory_limit) {
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || device_index >= count) {
    throw ConfigError("no CUDA device " + std::to_string(device_index) + " (" +
                      (code != cudaSuccess ? cudaGetErrorString(code) : std::to_string(count) + " found") +
                      "): use --device cpu");
  }
  cuda_check(cudaSetDevice(device_index), "cudaSetDevice");
  Context c;
  c.device_ = Device::cuda;
  c.threads_ = omp_get_num_procs();
  c.allocator_ = Allocator::make(Device::cuda, device_index, memory_limit);
  auto handles = std::make_shared<CudaHandles>();
  handles->device = device_index;
  cuda_check(cudaStreamCreateWithFlags(&handles->stream, cudaStreamNonBlocking), "stream");
  cublas_check(cublasLtCreate(&handles->blas), "cublasLtCreate");
  cuda_check(cudaDeviceGetAttribute(&handles->multiprocessors, cudaDevAttrMultiProcessorCount, device_index),
             "multiprocessor count");
  c.handles_ = handles;
  handles->blas_workspace = c.empty({int64_t{32} << 20}, DType::u8, MemoryTag::workspace);
  return c;
}

std::string Context::device_name() const {
  if (device_ == Device::cpu) return "CPU, " + std::to_string(threads_) + " threads";
  cudaDeviceProp properties;
  cuda_check(cudaGetDeviceProperties(&properties, handles_->device), "device properties");
  return properties.name;
}

void Context::copy_in(const Tensor& to, const void* from) const {
  if (to.bytes() == 0) return;
  if (device_ == Device::cpu) {
    std::memcpy(to.raw(), from, static_cast<size_t>(to.bytes()));
    return;
  }
  if (to.bytes() <= StagingRing::kBlockBytes && handles_->staging.copy(to.raw(), from, to.bytes(), handles_->stream))
    return;
  cuda_check(cudaMemcpyAsync(to.raw(), from, static_cast<size_t>(to.bytes()), cudaMemcpyHostToDevice, handles_->stream),
             "copy to device");
  // Pageable memory is staged by the driver, but only a finished copy lets the caller reuse it in every case.
  cuda_check(cudaStreamSynchronize(handles_->stream), "copy to device");
}

void Context::copy_out(void* to, const Tensor& from) const {
  if (from.bytes() == 0) return;
  if (device_ == Device::cpu) {
    std::memcpy(to, from.raw(), static_cast<size_t>(from.bytes()));
    return;
  }
  cuda_check(
      cudaMemcpyAsync(to, from.raw(), static_cast<size_t>(from.bytes()), cudaMemcpyDeviceToHost, handles_->stream),
      "copy to host");
  synchronize();
}

void Context::fill_zero(const Tensor& t) const {
  if (t.bytes() == 0) return;
  if (device_ == Device::cpu) {
    std::memset(t.raw(), 0, static_cast<size_t>(t.bytes()));
  } else {
    cuda_check(cudaMemsetAsync(t.raw(), 0, static_cast<size_t>(t.bytes()), handles_->stream), "memset");
  }
}

void Context::synchronize() const {
  if (device_ == Device::cuda) cuda_check(cudaStreamSynchronize(handles_->stream), "synchronize");
}

}  // namespace tactus
#endif
