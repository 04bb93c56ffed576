#include "autograd/rope.h"

#include "autograd/check.h"
#include "kernels/pointwise.h"
#include "kernels/rope.h"

namespace tactus {
namespace {

struct Turn {
  int heads;
  int64_t head_stride, offset, dim;
  Tensor positions, table;

  /// y = x with the columns turned; y may be x. Where every column is turned that is one pass.
  template <class D, class T>
  void apply(const Context& ctx, Mat<const T> x, bool inverse, Mat<T> y) const {
    const bool all = offset == 0 && heads * dim == y.cols && (heads == 1 || head_stride == dim);
    if (!all && x.ptr != y.ptr) axpby<D, T>(ctx, 1, x, 0, y);
    const Mat<const T> from = all ? x : Mat<const T>(y);
    rope<D, T>(ctx, from.columns(offset, y.cols), heads, head_stride, dim, positions.data<const int32_t>(),
               table.data<const acc_t<T>>(), inverse, y.columns(offset, y.cols));
  }
};

}  // namespace

Var rope(Tape& tape, const Slice& x, int heads, int64_t head_stride, int64_t offset, int64_t dim,
         const Tensor& positions, const Tensor& table) {
  check_columns("rope", "x", x, x.rows(), x.cols());
  const int64_t last = (heads - 1) * head_stride + offset + dim;
  check_argument(
      heads > 0 && offset >= 0 && dim % 2 == 0 && (heads == 1 || offset + dim <= head_stride) && last <= x.cols(),
      "rope", "x", x.var, "a window of at least " + std::to_string(last) + " columns with even rotated widths");
  check_argument(positions.elements() == x.rows(), "rope", "positions", Var(positions),
                 "[" + std::to_string(x.rows()) + "]");
  check_argument(table.cols() == dim, "rope", "table", Var(table), "[positions, " + std::to_string(dim) + "]");
  const Context& ctx = tape.ctx();
  const DType dtype = x.var.value().dtype();
  const Turn turn{heads, head_stride, offset, dim, positions, table};
  Tensor y = ctx.empty({x.rows(), x.cols()}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() { turn.apply<D, T>(ctx, x.mat<T>(), false, y.mat<T>()); });
  return tape.record(y, {x.var}, [x = x.without_value(), turn, dtype](Tape& tape, std::span<const Tensor> grads) {
    const Tensor& dy = grads[0];
    GradientWriter writer(tape);
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
      turn.apply<D, T>(tape.ctx(), dy.mat<const T>(), true, x.whole() ? dy.mat<T>() : writer.slot<T>(x));
    });
    if (x.whole()) tape.give(x.var, dy);
  });
}

}  // namespace tactus
