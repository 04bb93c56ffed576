#include "autograd/dropout.h"

#include "autograd/check.h"
#include "kernels/dropout.h"

namespace tactus {

Var dropout_add(Tape& tape, const Var& x, const Var& residual, DropoutKey key, const Segments& segments) {
  check_argument(!key.active() || x.rows() == segments.rows(), "dropout_add", "x", x,
                 std::to_string(segments.rows()) + " rows");
  check_argument(!residual.defined() || residual.value().shape() == x.value().shape(), "dropout_add", "residual",
                 residual, x.value().shape().to_string());
  if (!key.active() && !residual.defined()) return x;
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  Tensor y = ctx.empty(x.value().shape(), dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    const Mat<const T> add = residual.defined() ? residual.value().mat<const T>() : Mat<const T>{};
    dropout_add<D, T>(ctx, x.value().mat<const T>(), add, key, segments.view(), y.mat<T>());
  });
  return tape.record(y, {x, residual},
                     [x = x.without_value(), residual = residual.without_value(), key, segments, dtype](
                         Tape& tape, std::span<const Tensor> grads) {
                       const Tensor& dy = grads[0];
                       if (x.needs_grad()) {
                         // Without a residual nobody else wants dy: the mask is applied in place.
                         Tensor dx = residual.needs_grad() ? tape.ctx().empty(dy.shape(), dtype) : dy;
                         dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
                           dropout_add<D, T>(tape.ctx(), dy.mat<const T>(), {}, key, segments.view(), dx.mat<T>());
                         });
                         tape.give(x, dx);
                       }
                       tape.give(residual, dy);
                     });
}

Var relu_dropout(Tape& tape, const Var& x, DropoutKey key, const Segments& segments) {
  check_argument(!key.active() || x.rows() == segments.rows(), "relu_dropout", "x", x,
                 std::to_string(segments.rows()) + " rows");
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  Tensor y = ctx.empty(x.value().shape(), dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    relu_dropout_forward<D, T>(ctx, x.value().mat<const T>(), key, segments.view(), y.mat<T>());
  });
  return tape.record(y, {x}, [x = x.without_value(), y, key, dtype](Tape& tape, std::span<const Tensor> grads) {
    const Tensor& dy = grads[0];
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
      relu_dropout_backward<D, T>(tape.ctx(), dy.mat<const T>(), y.mat<const T>(), key, dy.mat<T>());
    });
    tape.give(x, dy);
  });
}

}  // namespace tactus
