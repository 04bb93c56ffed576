#include "kernels/cross_entropy.h"

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {
namespace {

/// Smoothing mass of each wrong token. One token alone has no wrong ones.
double mass_per_token(double smoothing, int64_t vocabulary) {
  return vocabulary > 1 ? smoothing / static_cast<double>(vocabulary - 1) : 0.0;
}

void check_targets(const char* op, const int32_t* targets, int64_t rows, int64_t vocabulary) {
  for (int64_t r = 0; r < rows; ++r) {
    check_value(targets[r] >= -1 && targets[r] < vocabulary, op, "targets", "-1 or a column of logits", targets[r]);
  }
}

}  // namespace

template <class D, class T>
void cross_entropy_forward(const Context& ctx, Mat<const T> logits, const int32_t* targets, double smoothing,
                           const acc_t<T>* row_weight, acc_t<T>* loss, acc_t<T>* nll, acc_t<T>* lse, int32_t* correct) {
  check_shape("cross_entropy_forward", "logits", logits, logits.rows, logits.cols);
  check_targets("cross_entropy_forward", targets, logits.rows, logits.cols);
  const int64_t n = logits.cols;
  const double each = mass_per_token(smoothing, n);
  const T on_target = static_cast<T>(1 - smoothing - each), on_all = static_cast<T>(each);
  parallel_for(ctx, logits.rows, 16 * n, [&](int64_t r) {
    const int32_t target = targets[r];
    if (target < 0) {
      loss[r] = nll[r] = lse[r] = 0, correct[r] = 0;
      return;
    }
    const T* x = logits.row(r);
    const T top = row_max(x, n);
    const T log_sum = top + std::log(sum_exp(x, T(1), top, n));
    T value = log_sum - x[target];
    nll[r] = value;
    lse[r] = log_sum;
    correct[r] = x[target] == top && std::find(x, x + target, top) == x + target;
    if (on_all != T(0)) {
      // Sum of log p about lse, not n lse - sum x: the large parts cancel term by term.
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < n; ++i) sum += log_sum - x[i];
      value = on_target * value + on_all * sum;
    } else {
      value *= on_target;
    }
    loss[r] = row_weight ? row_weight[r] * value : value;
  });
}

template <class D, class T>
void cross_entropy_backward(const Context& ctx, Mat<const T> logits, const int32_t* targets, double smoothing,
                            const acc_t<T>* row_weight, const acc_t<T>* lse, const acc_t<T>* grad, Mat<T> dlogits) {
  check_shape("cross_entropy_backward", "logits", logits, dlogits.rows, dlogits.cols);
  check_shape("cross_entropy_backward", "dlogits", dlogits, dlogits.rows, dlogits.cols);
  check_targets("cross_entropy_backward", targets, logits.rows, logits.cols);
  const int64_t n = logits.cols;
  const double each = mass_per_token(smoothing, n);
  const T on_all = static_cast<T>(each), extra = static_cast<T>(1 - smoothing - each);
  // All of the target distribution, so that rows of the gradient sum to 0. With one token and smoothing it is below 1,
  // as the loss is.
  const T mass = static_cast<T>(1 - smoothing + each * static_cast<double>(n - 1));
  parallel_for(ctx, dlogits.rows, 16 * n, [&](int64_t r) {
    T* out = dlogits.row(r);
    const int32_t target = targets[r];
    if (target < 0) {
      std::fill_n(out, n, T(0));
      return;
    }
    const T* x = logits.row(r);
    const T weight = row_weight ? *grad * row_weight[r] : *grad, base = lse[r];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = weight * (mass * exp_of(x[i] - base) - on_all);
    out[target] -= weight * extra;
  });
}

#define TACTUS_INSTANTIATE(T)                                                                                         \
  template void cross_entropy_forward<Cpu, T>(const Context&, Mat<const T>, const int32_t*, double, const T*, T*, T*, \
                                              T*, int32_t*);                                                          \
  template void cross_entropy_backward<Cpu, T>(const Context&, Mat<const T>, const int32_t*, double, const T*,        \
                                               const T*, const T*, Mat<T>);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
