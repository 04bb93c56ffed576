// CUDA top-k of a log-softmax: one block per row. Each thread knows the best of its own tokens; the block takes the
// best of those k times, and only the thread that gave it looks through its tokens again.
#include "kernels/decode/attention_decode.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"
#include "kernels/shared/device_softmax.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kThreads = 256;

struct Candidates {
  int forbidden, eos;
  bool allow_eos, only_eos;
  __device__ bool contains(int token) const {
    return token != forbidden && (only_eos ? token == eos : allow_eos || token != eos);
  }
};

/// Best key below `bound` of the tokens of one thread. -inf and NaN are no candidates.
template <class T>
__device__ uint64_t best_below(uint64_t bound, const T* row, int cols, const Candidates& candidates) {
  uint64_t best = 0;
  for (int token = static_cast<int>(threadIdx.x); token < cols; token += kThreads) {
    const float x = to_float(row[token]);
    const uint64_t key = x > kNegInf && candidates.contains(token) ? order_key(x, token) : 0;
    if (key < bound && key > best) best = key;
  }
  return best;
}

template <class T>
__global__ void __launch_bounds__(kThreads) topk_kernel(Mat<const T> logits, float scale, int k, Candidates candidates,
                                                        float* values, int32_t* tokens, bool wide) {
  __shared__ float scratch[2 * kWarp];
  __shared__ uint64_t keys[kWarp];
  const int64_t r = blockIdx.x;
  const T* row = logits.row(r);
  const int cols = static_cast<int>(logits.cols);
  const float lse = block_log_sum_exp(row, logits.cols, scale, wide, scratch);
  uint64_t own = best_below(~uint64_t{0}, row, cols, candidates);
  for (int i = 0; i < k; ++i) {
    const uint64_t best = block_max_key(own, keys);
    const int32_t token = best ? index_of_key(best) : -1;
    if (threadIdx.x == 0) {
      // A row with a NaN must not look like one without candidates.
      values[r * k + i] = best ? scale * to_float(row[token]) - lse : lse != lse ? lse : kNegInf;
      tokens[r * k + i] = token;
    }
    if (best && own == best) own = best_below(best, row, cols, candidates);
  }
}

}  // namespace

template <class D, class T>
void topk_log_softmax(const Context& ctx, Mat<const T> logits, double temperature, int k, int forbidden, int eos,
                      bool allow_eos, bool only_eos, acc_t<T>* values, int32_t* tokens) {
  check_shape("topk_log_softmax", "logits", logits, logits.rows, logits.cols);
  check_value(k >= 1, "topk_log_softmax", "k", "at least 1", k);
  check_value(!only_eos || (eos >= 0 && eos < logits.cols), "topk_log_softmax", "eos", "a column of logits", eos);
  if (logits.rows == 0) return;
  topk_kernel<T><<<row_grid(logits.rows), kThreads, 0, stream_of(ctx)>>>(
      logits, static_cast<float>(1 / temperature), k, Candidates{forbidden, eos, allow_eos, only_eos}, values, tokens,
      wide_rows(logits));
  cuda_check_launch("topk_log_softmax");
}

template void topk_log_softmax<Cuda, float>(const Context&, Mat<const float>, double, int, int, int, bool, bool, float*,
                                            int32_t*);
template void topk_log_softmax<Cuda, bf16>(const Context&, Mat<const bf16>, double, int, int, int, bool, bool, float*,
                                           int32_t*);

}  // namespace tactus
