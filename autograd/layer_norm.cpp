#include "autograd/layer_norm.h"

#include "autograd/check.h"
#include "kernels/layer_norm.h"

namespace tactus {
namespace {

struct Saved {
  Slice x;
  Var gamma, beta;
  Tensor mean, rstd;
};

template <class D, class T>
void run_backward(Tape& tape, const Saved& s, const Tensor& dy) {
  using A = acc_t<T>;
  const Context& ctx = tape.ctx();
  auto sums = [&](const Var& v) {
    return v.needs_grad() ? tape.accumulator(v) : ctx.zeros(v.value().shape(), dtype_of<A>(), MemoryTag::workspace);
  };
  Tensor dgamma = sums(s.gamma), dbeta = sums(s.beta);
  auto run = [&](Mat<T> dx) {
    layer_norm_backward<D, T>(ctx, dy.mat<const T>(), s.x.mat<T>(), s.gamma.value().data<const T>(),
                              s.mean.data<const A>(), s.rstd.data<const A>(), dx, dgamma.data<A>(), dbeta.data<A>());
  };
  if (s.x.whole()) {
    run(dy.mat<T>());
    tape.give(s.x.var, dy);
  } else {
    GradientWriter writer(tape);
    run(writer.slot_or_scratch<T>(s.x));
  }
}

}  // namespace

Var layer_norm(Tape& tape, const Slice& x, const Var& gamma, const Var& beta, double eps) {
  check_columns("layer_norm", "x", x, x.rows(), x.cols());
  const std::string width = "[" + std::to_string(x.cols()) + "]";
  check_argument(gamma.defined() && gamma.value().elements() == x.cols(), "layer_norm", "gamma", gamma, width);
  check_argument(beta.defined() && beta.value().elements() == x.cols(), "layer_norm", "beta", beta, width);
  const Context& ctx = tape.ctx();
  const DType dtype = x.var.value().dtype(), acc = accumulator_of(dtype);
  Tensor y = ctx.empty({x.rows(), x.cols()}, dtype);
  Saved saved{x, gamma, beta.without_value(), ctx.empty({x.rows()}, acc), ctx.empty({x.rows()}, acc)};
  dispatch(ctx, dtype, [&]<class D, class T>() {
    layer_norm_forward<D, T>(ctx, x.mat<T>(), gamma.value().data<const T>(), beta.value().data<const T>(), eps,
                             y.mat<T>(), saved.mean.data<acc_t<T>>(), saved.rstd.data<acc_t<T>>());
  });
  return tape.record(y, {x.var, gamma, beta}, [saved, dtype](Tape& tape, std::span<const Tensor> grads) {
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() { run_backward<D, T>(tape, saved, grads[0]); });
  });
}

}  // namespace tactus
