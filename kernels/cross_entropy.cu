// CUDA cross-entropy: one block per row, one online pass for maximum, sum and argmax; probabilities are never stored.
#include "kernels/cross_entropy.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"
#include "kernels/shared/device_softmax.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kThreads = 256;

/// Smoothing mass of each wrong token. One token alone has no wrong ones.
double mass_per_token(double smoothing, int64_t vocabulary) {
  return vocabulary > 1 ? smoothing / static_cast<double>(vocabulary - 1) : 0.0;
}

struct ForwardOut {
  float *loss, *nll, *lse;
  int32_t* correct;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(Mat<const T> logits, const int32_t* targets, float on_target, float on_all, const float* row_weight,
                   ForwardOut out, bool wide) {
  __shared__ float scratch[2 * kWarp];
  __shared__ uint64_t keys[kWarp];
  const int64_t r = blockIdx.x;
  const int32_t target = targets[r];
  if (target < 0) {
    if (threadIdx.x == 0) out.loss[r] = out.nll[r] = out.lse[r] = 0, out.correct[r] = 0;
    return;
  }
  const T* row = logits.row(r);
  RunningSoftmax softmax;
  uint64_t best = 0;
  for (int64_t c = static_cast<int64_t>(threadIdx.x) * kGroup; c < logits.cols; c += kThreads * kGroup) {
    const int n = static_cast<int>(logits.cols - c < kGroup ? logits.cols - c : kGroup);
    float x[kGroup];
    load_group(row + c, n, wide, x);
    softmax.add_group(x, n);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const uint64_t key = i < n ? order_key(x[i], static_cast<int32_t>(c + i)) : 0;
      best = key > best ? key : best;
    }
  }
  const float log_sum = block_merge(softmax, scratch).log_sum();
  best = block_max_key(best, keys);
  float deviation = 0;
  if (on_all != 0.0f) {
    // Sum of log p about log_sum, not V log_sum - sum x: the large parts cancel term by term. The row is in cache.
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * kGroup; c < logits.cols; c += kThreads * kGroup) {
      const int n = static_cast<int>(logits.cols - c < kGroup ? logits.cols - c : kGroup);
      float x[kGroup];
      load_group(row + c, n, wide, x);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) deviation += i < n ? log_sum - x[i] : 0.0f;
    }
    deviation = block_sum(deviation, scratch);
  }
  if (threadIdx.x != 0) return;
  const float nll = log_sum - to_float(row[target]);
  const float loss = on_all != 0.0f ? on_target * nll + on_all * deviation : on_target * nll;
  out.loss[r] = row_weight ? row_weight[r] * loss : loss;
  out.nll[r] = nll;
  out.lse[r] = log_sum;
  out.correct[r] = best != 0 && index_of_key(best) == target;
}

template <class T>
struct Backward {
  Mat<const T> logits;
  const int32_t* targets;
  float mass, on_all, extra;  // the target distribution: its sum, each token's part, what the target has above it
  const float *row_weight, *lse, *grad;
  Mat<T> dlogits;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    const int32_t target = targets[r];
    float x[kGroup] = {};
    if (target >= 0) {
      const float weight = row_weight ? *grad * row_weight[r] : *grad, base = lse[r];
      load_group(logits.row(r) + c, n, wide, x);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float target_part = c + i == target ? on_all + extra : on_all;
        x[i] = weight * (mass * expf(x[i] - base) - target_part);
      }
    }
    store_group(dlogits.row(r) + c, n, wide, x);
  }
};

}  // namespace

template <class D, class T>
void cross_entropy_forward(const Context& ctx, Mat<const T> logits, const int32_t* targets, double smoothing,
                           const acc_t<T>* row_weight, acc_t<T>* loss, acc_t<T>* nll, acc_t<T>* lse, int32_t* correct) {
  check_shape("cross_entropy_forward", "logits", logits, logits.rows, logits.cols);
  if (logits.rows == 0) return;
  const double each = mass_per_token(smoothing, logits.cols);
  forward_kernel<T><<<row_grid(logits.rows), kThreads, 0, stream_of(ctx)>>>(
      logits, targets, static_cast<float>(1 - smoothing - each), static_cast<float>(each), row_weight,
      ForwardOut{loss, nll, lse, correct}, wide_rows(logits));
  cuda_check_launch("cross_entropy_forward");
}

template <class D, class T>
void cross_entropy_backward(const Context& ctx, Mat<const T> logits, const int32_t* targets, double smoothing,
                            const acc_t<T>* row_weight, const acc_t<T>* lse, const acc_t<T>* grad, Mat<T> dlogits) {
  check_shape("cross_entropy_backward", "logits", logits, dlogits.rows, dlogits.cols);
  check_shape("cross_entropy_backward", "dlogits", dlogits, dlogits.rows, dlogits.cols);
  const double each = mass_per_token(smoothing, logits.cols);
  const double mass = 1 - smoothing + each * static_cast<double>(logits.cols - 1);
  const Backward<T> f{logits,
                      targets,
                      static_cast<float>(mass),
                      static_cast<float>(each),
                      static_cast<float>(1 - smoothing - each),
                      row_weight,
                      lse,
                      grad,
                      dlogits,
                      wide_rows(logits) && wide_rows(dlogits)};
  for_each_group(ctx, dlogits.rows, dlogits.cols, f, "cross_entropy_backward");
}

#define TACTUS_INSTANTIATE(T)                                                                                       \
  template void cross_entropy_forward<Cuda, T>(const Context&, Mat<const T>, const int32_t*, double, const float*,  \
                                               float*, float*, float*, int32_t*);                                   \
  template void cross_entropy_backward<Cuda, T>(const Context&, Mat<const T>, const int32_t*, double, const float*, \
                                                const float*, const float*, Mat<T>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
