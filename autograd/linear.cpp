#include "autograd/linear.h"

#include "autograd/check.h"
#include "kernels/gemm.h"
#include "kernels/pointwise.h"
#include "kernels/reduce.h"

namespace tactus {
namespace {

struct Saved {
  Slice x;
  Var weight, bias;
  Tensor y;  // with ReLU: the output carries the mask
  int64_t begin, end;
};

template <class D, class T>
void linear_backward(Tape& tape, const Saved& s, const Tensor& dy) {
  using A = acc_t<T>;
  const Context& ctx = tape.ctx();
  // The incoming gradient belongs to this closure alone, so the mask is applied in place.
  if (s.y.defined()) relu_backward<D, T>(ctx, dy.mat<T>(), s.y.mat<const T>(), dy.mat<T>());
  if (s.bias.needs_grad()) column_sum<D, T>(ctx, dy.mat<T>(), tape.accumulator(s.bias).data<A>() + s.begin, true);
  if (s.weight.needs_grad()) {
    gemm<D, T, A>(ctx, dy.mat<T>(), s.x.mat<T>(), tape.accumulator(s.weight).mat<A>().slice(s.begin, s.end),
                  {.transpose_a = true, .beta = 1});
  }
  GradientWriter writer(tape);
  if (s.x.var.needs_grad()) {
    gemm<D, T, T>(ctx, dy.mat<T>(), s.weight.value().mat<const T>().slice(s.begin, s.end), writer.slot<T>(s.x));
  }
}

}  // namespace

Var linear(Tape& tape, const Slice& x, const Var& weight, const Var& bias, const LinearOptions& options) {
  const int64_t begin = options.out_begin, end = options.out_end < 0 ? weight.rows() : options.out_end;
  check_argument(
      weight.defined() && weight.value().shape().rank() == 2 && begin >= 0 && begin <= end && end <= weight.rows(),
      "linear", "weight", weight, "[>= " + std::to_string(end) + ", in]");
  check_columns("linear", "x", x, x.rows(), weight.cols());
  check_argument(!bias.defined() || bias.value().elements() == weight.rows(), "linear", "bias", bias,
                 "[" + std::to_string(weight.rows()) + "]");
  const Context& ctx = tape.ctx();
  const DType dtype = weight.value().dtype();
  Tensor y = ctx.empty({x.rows(), end - begin}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    gemm<D, T, T>(ctx, x.mat<T>(), weight.value().mat<const T>().slice(begin, end), y.mat<T>(),
                  {.transpose_b = true,
                   .bias = bias.defined() ? bias.value().data<const T>() + begin : nullptr,
                   .relu = options.relu});
  });
  Saved saved{weight.needs_grad() ? x : x.without_value(), weight, bias.without_value(), {}, begin, end};
  if (options.relu) saved.y = y;
  return tape.record(y, {x.var, weight, bias}, [saved, dtype](Tape& tape, std::span<const Tensor> grads) {
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() { linear_backward<D, T>(tape, saved, grads[0]); });
  });
}

}  // namespace tactus
