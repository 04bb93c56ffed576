// CUDA and cuBLASLt handles, and checks that turn return codes into Errors. Included by .cu files and core/ alone.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "core/context.h"

namespace tactus {

struct CudaHandles {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasLtHandle_t blas = nullptr;
  Tensor blas_workspace;
  int multiprocessors = 0;
  /// Algorithms found for shapes of matrix products (kernels/gemm.cu). A context is driven by one host thread at a time.
  mutable std::shared_ptr<void> gemm_cache;
  ~CudaHandles();
};

/// Throws Error naming `what` when a call failed.
void cuda_check(cudaError_t code, const char* what);
void cublas_check(cublasStatus_t code, const char* what);
/// Checks the launch that just happened.
inline void cuda_check_launch(const char* kernel) { cuda_check(cudaGetLastError(), kernel); }
inline cudaStream_t stream_of(const Context& ctx) { return ctx.cuda_handles()->stream; }

}  // namespace tactus
