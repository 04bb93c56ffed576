// CUDA and cuBLASLt handles, and checks that turn return codes into Errors. Included by .cu files and core/ alone.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "core/context.h"

namespace tactus {

/// Page-locked memory through which small host arrays reach the device without a wait: blocks are filled one after the
/// other and used again once the copies out of them are done. For one host thread at a time.
class StagingRing {
 public:
  static constexpr int64_t kBlockBytes = int64_t{2} << 20;
  StagingRing() = default;
  StagingRing(const StagingRing&) = delete;
  ~StagingRing();
  /// Copies `bytes` <= kBlockBytes of host memory, which may change at once, to device memory on `stream`. False where
  /// the system grants no page-locked memory.
  bool copy(void* to, const void* from, int64_t bytes, cudaStream_t stream);

 private:
  static constexpr int kBlocks = 4;
  struct Block {
    char* memory = nullptr;
    cudaEvent_t free = nullptr;
  };
  Block blocks_[kBlocks];
  int at_ = 0;
  int64_t used_ = 0;
  bool refused_ = false;
};

struct CudaHandles {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasLtHandle_t blas = nullptr;
  Tensor blas_workspace;
  int multiprocessors = 0;
  /// Algorithms found for shapes of matrix products (kernels/gemm.cu). A context is driven by one host thread at a
  /// time.
  mutable std::shared_ptr<void> gemm_cache;
  mutable StagingRing staging;
  ~CudaHandles();
};

/// Throws Error naming `what` when a call failed.
void cuda_check(cudaError_t code, const char* what);
void cublas_check(cublasStatus_t code, const char* what);
/// Checks the launch that just happened.
inline void cuda_check_launch(const char* kernel) { cuda_check(cudaGetLastError(), kernel); }
inline cudaStream_t stream_of(const Context& ctx) { return ctx.cuda_handles()->stream; }

}  // namespace tactus
