#include "autograd/conv1d.h"

#include "autograd/check.h"
#include "kernels/gemm.h"
#include "kernels/reduce.h"

namespace tactus {
namespace {

struct Saved {
  Var x, weight, bias;
  Segments in, out;
  int kernel, stride, pad;
};

template <class D, class T>
Tensor unfolded(const Context& ctx, const Saved& s) {
  Tensor columns = ctx.empty({s.out.rows(), s.weight.cols()}, dtype_of<T>(), MemoryTag::workspace);
  unfold<D, T>(ctx, s.x.value().mat<const T>(), s.in.view(), s.out.view(), s.kernel, s.stride, s.pad, columns.mat<T>());
  return columns;
}

template <class D, class T>
void conv1d_backward(Tape& tape, const Saved& s, const Tensor& dy) {
  using A = acc_t<T>;
  const Context& ctx = tape.ctx();
  if (s.bias.needs_grad()) column_sum<D, T>(ctx, dy.mat<T>(), tape.accumulator(s.bias).data<A>(), true);
  if (s.weight.needs_grad()) {
    gemm<D, T, A>(ctx, dy.mat<T>(), unfolded<D, T>(ctx, s).template mat<T>(), tape.accumulator(s.weight).mat<A>(),
                  {.transpose_a = true, .beta = 1});
  }
  if (!s.x.needs_grad()) return;
  Tensor dcolumns = ctx.empty({s.out.rows(), s.weight.cols()}, dtype_of<T>(), MemoryTag::workspace);
  gemm<D, T, T>(ctx, dy.mat<T>(), s.weight.value().mat<const T>(), dcolumns.mat<T>());
  GradientWriter writer(tape);
  fold<D, T>(ctx, dcolumns.mat<T>(), s.in.view(), s.out.view(), s.kernel, s.stride, s.pad, writer.slot<T>(s.x));
}

}  // namespace

Var conv1d(Tape& tape, const Var& x, const Segments& in, const Segments& out, const Var& weight, const Var& bias,
           int kernel, int stride, int pad) {
  check_argument(x.rows() == in.rows(), "conv1d", "x", x, std::to_string(in.rows()) + " rows");
  check_argument(weight.cols() == kernel * x.cols(), "conv1d", "weight", weight,
                 "[out, " + std::to_string(kernel * x.cols()) + "]");
  check_argument(!bias.defined() || bias.value().elements() == weight.rows(), "conv1d", "bias", bias,
                 "[" + std::to_string(weight.rows()) + "]");
  for (int64_t i = 0; i < std::max(in.count(), out.count()); ++i) {
    if (in.count() == out.count() && out.length(i) == conv1d_length(in.length(i), kernel, stride, pad)) continue;
    throw ShapeError("conv1d: the output lengths are not conv1d_length of the " + std::to_string(in.count()) +
                     " input lengths (first difference at sequence " + std::to_string(i) + ")");
  }
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  Saved saved{x, weight, bias.without_value(), in, out, kernel, stride, pad};
  Tensor y = ctx.empty({out.rows(), weight.rows()}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    gemm<D, T, T>(ctx, unfolded<D, T>(ctx, saved).template mat<T>(), weight.value().mat<const T>(), y.mat<T>(),
                  {.transpose_b = true, .bias = bias.defined() ? bias.value().data<const T>() : nullptr});
  });
  if (!weight.needs_grad()) saved.x = x.without_value();
  return tape.record(y, {x, weight, bias}, [saved, dtype](Tape& tape, std::span<const Tensor> grads) {
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() { conv1d_backward<D, T>(tape, saved, grads[0]); });
  });
}

}  // namespace tactus
