#include "autograd/mtla.h"

#include <optional>

#include "autograd/check.h"
#include "kernels/attention/mtla.h"

namespace tactus {
namespace {

struct Saved {
  GateInput prompt, own;
  Var code;
  Tensor prompt_gate, own_gate;
  std::optional<Segments> prompt_segments;
  Segments own_segments;
  int stride;

  KeyLayout layout() const { return {prompt_segments ? prompt_segments->view() : SegmentsView{}, own_segments.view()}; }
};

template <class T>
GateRows<T> rows_of(const GateInput& in) {
  return {Slice(in.c).mat<T>(), Slice(in.p).mat<T>()};
}

template <class T>
acc_t<T>* gate_of(const Tensor& gate) {
  return gate.defined() ? gate.data<acc_t<T>>() : nullptr;
}

template <class T>
Mat<T> mat_of(const Tensor& t) {
  return t.defined() ? t.mat<T>() : Mat<T>{};
}

template <class D, class T>
void run_backward(Tape& tape, const Saved& s, std::span<const Tensor> grads) {
  const Context& ctx = tape.ctx();
  const bool prompted = s.prompt.c.defined();
  auto gradient = [&](const Var& c, const Tensor& grad) {
    return or_zeros(ctx, grad, c.value().shape(), dtype_of<T>());
  };
  const Tensor own_dsum = gradient(s.own.c, grads[0]);
  const Tensor prompt_dsum = prompted ? gradient(s.prompt.c, grads[1]) : Tensor{};
  GradientWriter writer(tape);
  auto targets = [&](const GateInput& in) {
    return GateGradients<T>{writer.slot_or_scratch<T>(in.c), writer.slot_or_scratch<T>(in.p)};
  };
  const GateGradients<T> prompt_out = targets(s.prompt), own_out = targets(s.own);
  gate_sum_backward<D, T>(ctx, s.layout(), s.stride, rows_of<T>(s.prompt), rows_of<T>(s.own),
                          s.code.value().mat<const T>(), gate_of<T>(s.prompt_gate), gate_of<T>(s.own_gate),
                          mat_of<T>(prompt_dsum), own_dsum.mat<T>(), prompt_out, own_out,
                          writer.slot_or_scratch<T>(s.code));
}

void check_input(const char* argument, const GateInput& in, int64_t rows, const Var& code) {
  check_argument(in.c.defined() && in.c.rows() == rows, "gate_sum", argument, in.c,
                 std::to_string(rows) + " latent rows");
  check_argument(in.p.defined() && in.p.rows() == rows && in.p.cols() == code.cols(), "gate_sum", argument, in.p,
                 "[" + std::to_string(rows) + ", " + std::to_string(code.cols()) + "] for the projection");
}

}  // namespace

GateSum gate_sum(Tape& tape, const GateInput& prompt, const GateInput& own, const Var& code,
                 const Segments* prompt_segments, const Segments& own_segments, int stride) {
  const bool prompted = prompt_segments != nullptr;
  check_input("own", own, own_segments.rows(), code);
  if (prompted) check_input("prompt", prompt, prompt_segments->rows(), code);
  const Context& ctx = tape.ctx();
  const DType dtype = own.c.value().dtype(), acc = accumulator_of(dtype);
  Saved saved{prompted ? prompt : GateInput{}, own, code, {}, ctx.empty({own.c.rows()}, acc), {}, own_segments, stride};
  Tensor own_sum = ctx.empty(own.c.value().shape(), dtype), prompt_sum;
  if (prompted) {
    saved.prompt_segments = *prompt_segments;
    saved.prompt_gate = ctx.empty({prompt.c.rows()}, acc);
    prompt_sum = ctx.empty(prompt.c.value().shape(), dtype);
  }
  dispatch(ctx, dtype, [&]<class D, class T>() {
    gate_sum_forward<D, T>(ctx, saved.layout(), stride, rows_of<T>(saved.prompt), rows_of<T>(own),
                           code.value().mat<const T>(), {mat_of<T>(prompt_sum), gate_of<T>(saved.prompt_gate)},
                           {own_sum.mat<T>(), gate_of<T>(saved.own_gate)});
  });
  std::vector<Tensor> outputs{own_sum};
  if (prompted) outputs.push_back(prompt_sum);
  std::vector<Var> sums =
      tape.record(std::move(outputs), {saved.prompt.c, saved.prompt.p, own.c, own.p, code},
                  [saved, dtype](Tape& tape, std::span<const Tensor> grads) {
                    dispatch(tape.ctx(), dtype, [&]<class D, class T>() { run_backward<D, T>(tape, saved, grads); });
                  });
  return {prompted ? sums[1] : Var{}, sums[0]};
}

}  // namespace tactus
