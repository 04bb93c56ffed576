#include "autograd/layer_mix.h"

#include "autograd/check.h"
#include "kernels/layer_mix.h"

namespace tactus {

Var layer_mix(Tape& tape, const Var& x, const Var& logits) {
  const int64_t layers = logits.value().elements();
  check_argument(layers > 0 && x.cols() % layers == 0, "layer_mix", "x", x,
                 "[rows, a multiple of " + std::to_string(layers) + "]");
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  const Tensor y = ctx.empty({x.rows(), x.cols() / layers}, dtype);
  const Tensor weights = ctx.empty({layers}, accumulator_of(dtype));
  dispatch(ctx, dtype, [&]<class D, class T>() {
    layer_mix_weights<D, T>(ctx, layers, logits.value().data<const T>(), weights.data<acc_t<T>>());
    layer_mix_forward<D, T>(ctx, x.value().mat<const T>(), layers, weights.data<const acc_t<T>>(), y.mat<T>());
  });
  return tape.record(y, {x, logits}, [x, logits, weights, layers, dtype](Tape& tape, std::span<const Tensor> grads) {
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
      using A = acc_t<T>;
      const Mat<const T> dy = grads[0].mat<const T>();
      const A* w = weights.data<const A>();
      if (logits.needs_grad()) {
        layer_mix_backward_weights<D, T>(tape.ctx(), dy, x.value().mat<const T>(), layers, w,
                                         tape.accumulator(logits).data<A>());
      }
      if (!x.needs_grad()) return;
      GradientWriter writer(tape);
      layer_mix_backward_x<D, T>(tape.ctx(), dy, layers, w, writer.slot<T>(x));
    });
  });
}

}  // namespace tactus
