#include "autograd/pointwise.h"

#include "autograd/check.h"
#include "kernels/pointwise.h"

namespace tactus {
namespace {

/// y = factor x, a new tensor.
Tensor scaled(const Context& ctx, const Tensor& x, double factor) {
  Tensor y = ctx.empty(x.shape(), x.dtype());
  dispatch(ctx, x.dtype(), [&]<class D, class T>() { axpby<D, T>(ctx, factor, x.mat<const T>(), 0, y.mat<T>()); });
  return y;
}

}  // namespace

Var glu(Tape& tape, const Var& x) {
  check_argument(x.defined() && x.cols() % 2 == 0, "glu", "x", x, "an even number of columns");
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  Tensor y = ctx.empty({x.rows(), x.cols() / 2}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() { glu_forward<D, T>(ctx, x.value().mat<const T>(), y.mat<T>()); });
  return tape.record(y, {x}, [x, dtype](Tape& tape, std::span<const Tensor> grads) {
    GradientWriter writer(tape);
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
      glu_backward<D, T>(tape.ctx(), grads[0].mat<const T>(), x.value().mat<const T>(), writer.slot<T>(x));
    });
  });
}

Var relu(Tape& tape, const Var& x) {
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  Tensor y = ctx.empty(x.value().shape(), dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() { relu_forward<D, T>(ctx, x.value().mat<const T>(), y.mat<T>()); });
  return tape.record(y, {x}, [x = x.without_value(), y, dtype](Tape& tape, std::span<const Tensor> grads) {
    const Tensor& dy = grads[0];
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() {
      relu_backward<D, T>(tape.ctx(), dy.mat<const T>(), y.mat<const T>(), dy.mat<T>());
    });
    tape.give(x, dy);
  });
}

Var add(Tape& tape, const Var& a, const Var& b) {
  check_argument(b.defined() && a.value().shape() == b.value().shape(), "add", "b", b, a.value().shape().to_string());
  const Context& ctx = tape.ctx();
  const DType dtype = a.value().dtype();
  Tensor y = scaled(ctx, a.value(), 1);
  dispatch(ctx, dtype, [&]<class D, class T>() { axpby<D, T>(ctx, 1, b.value().mat<const T>(), 1, y.mat<T>()); });
  return tape.record(y, {a, b},
                     [a = a.without_value(), b = b.without_value()](Tape& tape, std::span<const Tensor> grads) {
                       // Both may be added to later, so only one of them gets the tensor itself.
                       if (a.needs_grad() && b.needs_grad()) tape.give(a, scaled(tape.ctx(), grads[0], 1));
                       tape.give(b.needs_grad() ? b : a, grads[0]);
                     });
}

Var scale(Tape& tape, const Var& x, double factor) {
  return tape.record(scaled(tape.ctx(), x.value(), factor), {x},
                     [x = x.without_value(), factor](Tape& tape, std::span<const Tensor> grads) {
                       tape.give(x, scaled(tape.ctx(), grads[0], factor));
                     });
}

Var scale_add_table(Tape& tape, const Var& x, double scale, const Tensor& table, const Segments& segments) {
  check_argument(x.rows() == segments.rows(), "scale_add_table", "x", x, std::to_string(segments.rows()) + " rows");
  check_argument(table.rows() >= segments.longest() && table.cols() == x.cols(), "scale_add_table", "table", Var(table),
                 "[>= " + std::to_string(segments.longest()) + ", " + std::to_string(x.cols()) + "]");
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  Tensor y = ctx.empty(x.value().shape(), dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    scale_add_table<D, T>(ctx, x.value().mat<const T>(), scale, table.data<const acc_t<T>>(), segments.view(),
                          y.mat<T>());
  });
  return tape.record(y, {x}, [x = x.without_value(), scale](Tape& tape, std::span<const Tensor> grads) {
    tape.give(x, scaled(tape.ctx(), grads[0], scale));
  });
}

Var weighted_sum(Tape& tape, const std::vector<Var>& values, const std::vector<double>& weights) {
  if (values.empty() || values.size() != weights.size()) {
    throw ShapeError("weighted_sum: " + std::to_string(values.size()) + " values and " +
                     std::to_string(weights.size()) + " weights");
  }
  for (const Var& v : values) {
    check_argument(v.defined() && v.value().elements() == 1, "weighted_sum", "value", v, "one element");
  }
  const Context& ctx = tape.ctx();
  const DType dtype = values[0].value().dtype();
  Tensor sum = ctx.empty({1}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    for (size_t i = 0; i < values.size(); ++i) {
      axpby<D, T>(ctx, weights[i], values[i].value().mat<const T>(), i == 0 ? 0 : 1, sum.mat<T>());
    }
  });
  std::vector<Var> targets;
  for (const Var& v : values) targets.push_back(v.without_value());
  return tape.record(sum, values, [targets, weights](Tape& tape, std::span<const Tensor> grads) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!targets[i].needs_grad()) continue;
      tape.give(targets[i], scaled(tape.ctx(), grads[0], weights[i]).view(targets[i].value().shape()));
    }
  });
}

Var gather_rows(Tape& tape, const Var& x, const std::vector<int32_t>& index) {
  const int64_t rows = x.rows(), picked = static_cast<int64_t>(index.size());
  std::vector<int32_t> inverse(static_cast<size_t>(rows), -1);
  for (int64_t i = 0; i < picked; ++i) {
    const int32_t row = index[static_cast<size_t>(i)];
    if (row < 0 || row >= rows || inverse[static_cast<size_t>(row)] >= 0) {
      throw ShapeError("gather_rows: index[" + std::to_string(i) + "] is " + std::to_string(row) +
                       ", expected rows of [0, " + std::to_string(rows) + "), each at most once");
    }
    inverse[static_cast<size_t>(row)] = static_cast<int32_t>(i);
  }
  const Context& ctx = tape.ctx();
  const DType dtype = x.value().dtype();
  auto gather = [dtype](const Context& ctx, const Tensor& from, const Tensor& index, const Tensor& to) {
    dispatch(ctx, dtype, [&]<class D, class T>() {
      gather_rows<D, T>(ctx, from.mat<const T>(), index.data<const int32_t>(), to.mat<T>());
    });
  };
  Tensor y = ctx.empty({picked, x.cols()}, dtype);
  gather(ctx, x.value(), ctx.upload(index, MemoryTag::workspace), y);
  if (!x.needs_grad()) return Var(y);
  Tensor back = ctx.upload(inverse);
  return tape.record(y, {x}, [x = x.without_value(), back, gather](Tape& tape, std::span<const Tensor> grads) {
    Tensor dx = tape.ctx().empty(x.value().shape(), x.value().dtype());
    gather(tape.ctx(), grads[0], back, dx);
    tape.give(x, dx);
  });
}

}  // namespace tactus
