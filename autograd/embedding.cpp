#include "autograd/embedding.h"

namespace tactus {

Var embedding(Tape& tape, const Var& table, const TokenIndex& tokens, double scale) {
  const Context& ctx = tape.ctx();
  const DType dtype = table.value().dtype();
  Tensor y = ctx.empty({tokens.rows, table.cols()}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    embedding_forward<D, T>(ctx, table.value().mat<const T>(), tokens, scale, y.mat<T>());
  });
  return tape.record(y, {table},
                     [table = table.without_value(), tokens, scale, dtype](Tape& tape, std::span<const Tensor> grads) {
                       dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
                         embedding_backward<D, T>(tape.ctx(), grads[0].mat<const T>(), tokens, scale,
                                                  tape.accumulator(table).mat<acc_t<T>>());
                       });
                     });
}

}  // namespace tactus
