#include "autograd/tape.h"

#include <algorithm>

#include "kernels/pointwise.h"

namespace tactus {
namespace {

/// y (+)= x, both whole rows of the same extents.
void add_into(const Context& ctx, const Tensor& x, const Tensor& y, int64_t begin) {
  dispatch(ctx, x.dtype(), [&]<class D, class T>() {
    Mat<T> target = y.mat<T>().columns(begin, begin + x.cols());
    axpby<D, T>(ctx, 1, x.mat<const T>(), 1, target);
  });
}

}  // namespace

Tensor or_zeros(const Context& ctx, const Tensor& grad, const Shape& shape, DType dtype) {
  return grad.defined() ? grad : ctx.zeros(shape, dtype);
}

const Context& GradientWriter::tape_ctx() const { return tape_.ctx(); }

Tensor GradientWriter::slot_tensor(const Slice& s) {
  in_place_ = false;
  if (!s.var.needs_grad()) return {};
  GradNode* node = s.var.node().get();
  const Tensor& value = s.var.value();
  const Context& ctx = tape_.ctx();
  const bool fresh = std::find(fresh_.begin(), fresh_.end(), node) != fresh_.end();
  if (!node->grad.defined() && !node->parameter) {
    node->grad = s.whole() ? ctx.empty(value.shape(), value.dtype()) : ctx.zeros(value.shape(), value.dtype());
    fresh_.push_back(node);
    in_place_ = true;
    return node->grad;
  }
  if (fresh && !s.whole()) {
    in_place_ = true;
    return node->grad;
  }
  pending_.push_back({s, ctx.empty({s.rows(), s.cols()}, value.dtype())});
  return pending_.back().value;
}

GradientWriter::~GradientWriter() noexcept(false) {
  for (Pending& p : pending_) {
    if (p.slice.var.node()->parameter)
      throw Error("GradientWriter: parameters gather their gradient through accumulator()");
    add_into(tape_.ctx(), p.value, p.slice.var.node()->grad, p.slice.begin);
  }
}

Var Tape::leaf(Tensor value) const { return Var(std::move(value), record_ ? std::make_shared<GradNode>() : nullptr); }

Var Tape::parameter(Parameter& p) {
  if (!p.trainable || !p.grad.defined()) return Var(p.value);
  if (!record_) {
    if (used_) used_(p);
    return Var(p.value);
  }
  auto& node = parameters_[&p];
  if (!node) {
    node = std::make_shared<GradNode>();
    node->parameter = &p;
    node->grad = p.grad;
  }
  return Var(p.value, node);
}

std::vector<Var> Tape::record(std::vector<Tensor> outputs, const std::vector<Var>& inputs, Backward backward) {
  const bool wanted = record_ && std::any_of(inputs.begin(), inputs.end(), [](const Var& v) { return v.needs_grad(); });
  std::vector<Var> vars;
  if (!wanted) {
    for (Tensor& t : outputs) vars.emplace_back(std::move(t));
    return vars;
  }
  Entry entry;
  for (Tensor& t : outputs) {
    auto node = std::make_shared<GradNode>();
    entry.outputs.push_back(node);
    vars.emplace_back(std::move(t), std::move(node));
  }
  for (const Var& v : inputs) {
    if (!v.needs_grad()) continue;
    ++v.node()->pending;
    entry.inputs.push_back(v.node());
  }
  entry.backward = std::move(backward);
  entries_.push_back(std::move(entry));
  return vars;
}

Var Tape::record(Tensor output, const std::vector<Var>& inputs, Backward backward) {
  std::vector<Tensor> outputs;
  outputs.push_back(std::move(output));
  return record(std::move(outputs), inputs, std::move(backward)).front();
}

void Tape::backward(const Var& loss) {
  if (loss.value().elements() != 1) {
    throw ShapeError("backward: the loss must have one element, not shape " + loss.value().shape().to_string());
  }
  backward({loss}, {ctx_.upload_real({1.0}, loss.value().shape(), loss.value().dtype())});
}

void Tape::backward(const std::vector<Var>& outputs, const std::vector<Tensor>& grads) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].needs_grad()) give(outputs[i], grads[i]);
  }
  run_backward();
}

void Tape::run_backward() {
  while (!entries_.empty()) {
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    std::vector<Tensor> grads;
    bool any = false;
    for (auto& node : entry.outputs) {
      any |= node->grad.defined();
      grads.push_back(std::move(node->grad));
      node->grad = {};
    }
    if (any) entry.backward(*this, grads);
    for (auto& node : entry.inputs) {
      if (--node->pending == 0 && node->parameter && ready_) ready_(*node->parameter);
    }
  }
  parameters_.clear();
}

void Tape::give(const Var& v, Tensor grad) {
  if (!v.needs_grad()) return;
  GradNode& node = *v.node();
  if (node.parameter) throw Error("give: parameters gather their gradient through accumulator()");
  if (!node.grad.defined()) {
    node.grad = std::move(grad);
  } else {
    add_into(ctx_, grad, node.grad, 0);
  }
}

Tensor Tape::accumulator(const Var& v) {
  GradNode& node = *v.node();
  if (!node.grad.defined()) node.grad = ctx_.zeros(v.value().shape(), accumulator_of(v.value().dtype()));
  return node.grad;
}

}  // namespace tactus
