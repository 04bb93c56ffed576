#include "train/optimiser/optimiser.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/adam.h"
#include "kernels/reduce.h"

namespace tactus {

double scheduled_rate(const OptimiserOptions& o, int64_t total, int64_t n) {
  const double peak = o.learning_rate, at = static_cast<double>(n), warmup = static_cast<double>(o.warmup_updates);
  if (n < o.warmup_updates) return peak * at / warmup;
  if (o.schedule == "inverse_sqrt") return peak * std::sqrt(warmup / at);
  const double done = std::min(1.0, (at - warmup) / std::max(1.0, static_cast<double>(total) - warmup));
  return o.schedule == "linear" ? peak * (1 - done) : peak * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

Optimiser::Optimiser(const OptimiserOptions& options, ParameterStore& store, int64_t total_updates)
    : options_(options), total_updates_(total_updates), store_(store) {
  const DType acc = accumulator_of(store.compute_type());
  m_ = store.context().zeros({store.flat_size()}, acc, MemoryTag::optimiser);
  v_ = store.context().zeros({store.flat_size()}, acc, MemoryTag::optimiser);
  coefficient_ = store.context().zeros({1}, acc, MemoryTag::workspace);
}

double Optimiser::launch(int64_t update, double divisor, const double* loss, double* squared_norm) {
  const Context& ctx = store_.context();
  const int64_t n = store_.flat_size();
  const double rate = scheduled_rate(options_, total_updates_, update - 1);
  dispatch(ctx, store_.compute_type(), [&]<class D, class T>() {
    using A = acc_t<T>;
    // The norm is taken in double and divided afterwards: a sum over a million frames must not overflow on its way.
    squared_norm_to<D, A>(ctx, n, store_.flat_grad().data<A>(), squared_norm);
    adam_coefficient<D, A>(ctx, squared_norm, loss, divisor, options_.clip_norm, coefficient_.data<A>());
    AdamOptions o;
    o.learning_rate = rate;
    o.beta1 = options_.beta1;
    o.beta2 = options_.beta2;
    o.eps = options_.eps;
    o.weight_decay = options_.weight_decay;
    o.step = update;
    o.zero_grad = true;
    T* working = store_.flat_value().shares_storage(store_.flat_master()) ? nullptr : store_.flat_value().data<T>();
    adam_step<D, T>(ctx, n, o, coefficient_.data<A>(), store_.flat_master().data<A>(), m_.data<A>(), v_.data<A>(),
                    store_.flat_grad().data<A>(), working);
  });
  return rate;
}

Optimiser::Result Optimiser::step(int64_t update, double divisor) {
  const Context& ctx = store_.context();
  const Tensor scalars = ctx.zeros({2}, DType::f64, MemoryTag::workspace);  // loss | squared norm
  Result result;
  result.rate = launch(update, divisor, scalars.data<double>(), scalars.data<double>() + 1);
  result.norm = std::sqrt(ctx.download<double>(scalars)[1]) / divisor;
  result.finite = std::isfinite(result.norm);
  return result;
}

}  // namespace tactus
