#include "kernels/shared/device_rows.cuh"
#include "kernels/step_sums.h"

namespace tactus {
namespace {

using namespace device;

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads) add_kernel(const float* loss, const float* nll, const float* ctc,
                                                       int64_t rows, const int32_t* correct, double* sums) {
  __shared__ int32_t scratch[kWarp];
  int32_t right = 0;
  for (int64_t i = threadIdx.x; i < rows; i += kThreads) right += correct[i];
  right = block_sum(right, scratch);
  if (threadIdx.x != 0) return;
  sums[kSumLoss] += static_cast<double>(*loss);
  sums[kSumNll] += static_cast<double>(*nll);
  if (ctc) sums[kSumCtc] += static_cast<double>(*ctc);
  sums[kSumCorrect] += static_cast<double>(right);
}

}  // namespace

template <class D, class A>
void add_step_sums(const Context& ctx, const A* loss, const A* nll, const A* ctc, int64_t rows, const int32_t* correct,
                   double* sums) {
  add_kernel<<<1, kThreads, 0, stream_of(ctx)>>>(loss, nll, ctc, rows, correct, sums);
  cuda_check_launch("add_step_sums");
}

template void add_step_sums<Cuda, float>(const Context&, const float*, const float*, const float*, int64_t,
                                         const int32_t*, double*);

}  // namespace tactus
