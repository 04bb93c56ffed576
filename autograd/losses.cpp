#include "autograd/losses.h"

#include "autograd/check.h"
#include "kernels/cross_entropy.h"
#include "kernels/reduce.h"

namespace tactus {
namespace {

template <class D, class A>
void sum_to(const Context& ctx, const Tensor& values, const Tensor& sum) {
  reduce_sum<D, A>(ctx, values.elements(), values.data<const A>(), sum.data<A>());
}

}  // namespace

CrossEntropy cross_entropy(Tape& tape, const Var& logits, const Tensor& targets, double smoothing,
                           const Tensor& row_weight) {
  const int64_t rows = logits.rows();
  check_argument(targets.elements() == rows, "cross_entropy", "targets", Var(targets),
                 "[" + std::to_string(rows) + "]");
  check_argument(!row_weight.defined() || row_weight.elements() == rows, "cross_entropy", "row_weight", Var(row_weight),
                 "[" + std::to_string(rows) + "]");
  const Context& ctx = tape.ctx();
  const DType dtype = logits.value().dtype(), acc = accumulator_of(dtype);
  Tensor row_loss = ctx.empty({rows}, acc, MemoryTag::workspace),
         row_nll = ctx.empty({rows}, acc, MemoryTag::workspace);
  Tensor lse = ctx.empty({rows}, acc), correct = ctx.empty({rows}, DType::i32);
  Tensor loss = ctx.empty({1}, acc), nll = ctx.empty({1}, acc);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    using A = acc_t<T>;
    cross_entropy_forward<D, T>(ctx, logits.value().mat<const T>(), targets.data<const int32_t>(), smoothing,
                                row_weight.defined() ? row_weight.data<const A>() : nullptr, row_loss.data<A>(),
                                row_nll.data<A>(), lse.data<A>(), correct.data<int32_t>());
    sum_to<D, A>(ctx, row_loss, loss);
    sum_to<D, A>(ctx, row_nll, nll);
  });
  Var out = tape.record(loss, {logits}, [=](Tape& tape, std::span<const Tensor> grads) {
    GradientWriter writer(tape);
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
      using A = acc_t<T>;
      cross_entropy_backward<D, T>(tape.ctx(), logits.value().mat<const T>(), targets.data<const int32_t>(), smoothing,
                                   row_weight.defined() ? row_weight.data<const A>() : nullptr, lse.data<const A>(),
                                   grads[0].data<const A>(), writer.slot<T>(logits));
    });
  });
  return {out, nll, correct};
}

CtcLoss ctc_loss(Tape& tape, const Var& logits, const Segments& frames, const Segments& targets, const Tensor& labels,
                 int blank, bool zero_infinity) {
  check_argument(logits.rows() == frames.rows(), "ctc_loss", "logits", logits, std::to_string(frames.rows()) + " rows");
  check_argument(labels.elements() == targets.rows(), "ctc_loss", "labels", Var(labels),
                 "[" + std::to_string(targets.rows()) + "]");
  if (frames.count() != targets.count() || blank < 0 || blank >= logits.cols()) {
    throw ShapeError("ctc_loss: " + std::to_string(targets.count()) + " label sequences for " +
                     std::to_string(frames.count()) + " utterances, blank " + std::to_string(blank) + " of " +
                     std::to_string(logits.cols()) + " symbols");
  }
  const Context& ctx = tape.ctx();
  const DType dtype = logits.value().dtype(), acc = accumulator_of(dtype);
  Tensor each = ctx.empty({frames.count()}, acc), loss = ctx.empty({1}, acc);
  CtcSaved saved;
  dispatch(ctx, dtype, [&]<class D, class T>() {
    ctc_forward<D, T>(ctx, logits.value().mat<const T>(), frames, targets, labels.data<const int32_t>(), blank,
                      zero_infinity, each.data<acc_t<T>>(), saved);
    sum_to<D, acc_t<T>>(ctx, each, loss);
  });
  Var out = tape.record(loss, {logits}, [=](Tape& tape, std::span<const Tensor> grads) {
    GradientWriter writer(tape);
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
      using A = acc_t<T>;
      ctc_backward<D, T>(tape.ctx(), logits.value().mat<const T>(), frames, targets, labels.data<const int32_t>(),
                         blank, each.data<const A>(), saved, grads[0].data<const A>(), writer.slot<T>(logits));
    });
  });
  return {out, each};
}

}  // namespace tactus
