#include "autograd/recompute.h"

namespace tactus {
namespace {

void run_again(Tape& tape, const std::vector<Var>& inputs,
               const std::function<std::vector<Var>(Tape&, const std::vector<Var>&)>& f,
               std::span<const Tensor> grads) {
  Tape inner(tape.ctx());
  std::vector<Var> leaves;
  for (const Var& v : inputs) leaves.push_back(v.needs_grad() ? inner.leaf(v.value()) : v);
  std::vector<Var> outputs, reached;
  std::vector<Tensor> given;
  outputs = f(inner, leaves);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!grads[i].defined()) continue;
    reached.push_back(std::move(outputs[i]));
    given.push_back(grads[i]);
  }
  outputs.clear();  // values that only the outside holds on to need not outlive their closures
  inner.backward(reached, given);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].needs_grad() && leaves[i].grad().defined()) tape.give(inputs[i], leaves[i].grad());
  }
}

}  // namespace

std::vector<Var> recompute(Tape& tape, const std::vector<Var>& inputs,
                           std::function<std::vector<Var>(Tape&, const std::vector<Var>&)> f) {
  if (!tape.recording()) return f(tape, inputs);
  // The first run remembers nothing but which parameters it met: they become inputs of the op on the outer tape, which
  // so counts their uses and announces each when its last one, inside or outside, has run backward.
  std::vector<Var> uses = inputs;
  std::vector<Tensor> outputs;
  {
    Tape forward(tape.ctx(), false);
    forward.on_parameter_use([&](Parameter& p) { uses.push_back(tape.parameter(p)); });
    std::vector<Var> constants;
    for (const Var& v : inputs) constants.push_back(v.defined() ? forward.constant(v.value()) : Var{});
    for (Var& v : f(forward, constants)) outputs.push_back(v.value());
  }
  return tape.record(std::move(outputs), uses, [inputs, f = std::move(f)](Tape& tape, std::span<const Tensor> grads) {
    run_again(tape, inputs, f, grads);
  });
}

}  // namespace tactus
