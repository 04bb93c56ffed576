// Eager reverse-mode differentiation. A Var is a value with a place for its gradient; the Tape remembers, for each op,
// how its output's gradient becomes gradients of its inputs. Values are kept only by the closures that need them and by
// the caller, and each closure is destroyed as soon as it has run, so backward frees every saved tensor at its last
// use.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/parameters.h"

namespace tactus {

/// Where the gradient of a Var gathers.
struct GradNode {
  Tensor grad;
  Parameter* parameter = nullptr;
  int64_t pending = 0;  ///< recorded uses whose backward has not run yet (parameters)
};

class Var {
 public:
  Var() = default;
  explicit Var(Tensor value, std::shared_ptr<GradNode> node = nullptr)
      : value_(std::move(value)), node_(std::move(node)) {}
  bool defined() const { return value_.defined(); }
  const Tensor& value() const { return value_; }
  bool needs_grad() const { return node_ != nullptr; }
  /// Gradient after backward; undefined where none reached this value.
  const Tensor& grad() const { return node_->grad; }
  const std::shared_ptr<GradNode>& node() const { return node_; }
  /// The same Var without its value (extents and type stay): what a closure holds that only has to deliver a gradient,
  /// so that it does not keep the value alive.
  Var without_value() const { return Var(Tensor(nullptr, value_.device(), value_.dtype(), value_.shape()), node_); }
  int64_t rows() const { return value_.rows(); }
  int64_t cols() const { return value_.cols(); }

 private:
  Tensor value_;
  std::shared_ptr<GradNode> node_;
};

/// Columns [begin, end) of a Var: lets ops read and write parts of a fused projection in place.
struct Slice {
  Var var;
  int64_t begin = 0, end = 0;
  Slice() = default;
  Slice(const Var& v)
      : var(v), end(v.value().shape().rank() > 0 || v.defined() ? v.cols() : 0) {}  // NOLINT: a whole Var is a slice
  Slice(const Var& v, int64_t b, int64_t e) : var(v), begin(b), end(e) {}
  bool defined() const { return var.defined(); }
  bool whole() const { return begin == 0 && end == var.cols(); }
  int64_t rows() const { return var.rows(); }
  int64_t cols() const { return end - begin; }
  Slice without_value() const { return {var.without_value(), begin, end}; }
  template <class T>
  Mat<const T> mat() const {
    if (!var.defined()) return {};
    return var.value().mat<const T>().columns(begin, end);
  }
};

class Tape;

/// The gradients that one backward closure produces. Kernels assign into the windows that slot() returns; whatever
/// could not be written in place is added when the object is destroyed (commit).
class GradientWriter {
 public:
  explicit GradientWriter(Tape& tape) : tape_(tape) {}
  ~GradientWriter() noexcept(false);
  /// Window to be assigned with the gradient of `s`; an empty Mat where none is wanted. Windows of one Var asked for in
  /// the same closure must not overlap.
  template <class T>
  Mat<T> slot(const Slice& s) {
    Tensor t = slot_tensor(s);
    if (!t.defined()) return {};
    return in_place_ ? t.mat<T>().columns(s.begin, s.end) : t.mat<T>();
  }
  /// As slot(), for kernels that assign all their gradients at once: where none is wanted the window is one that is
  /// thrown away. Empty where `s` has no extent (an absent prompt).
  template <class T>
  Mat<T> slot_or_scratch(const Slice& s) {
    if (s.var.needs_grad() || s.cols() == 0) return slot<T>(s);
    scratch_.push_back(tape_ctx().empty({s.rows(), s.cols()}, dtype_of<T>(), MemoryTag::workspace));
    return scratch_.back().template mat<T>();
  }

 private:
  const Context& tape_ctx() const;
  Tensor slot_tensor(const Slice& s);
  struct Pending {
    Slice slice;
    Tensor value;
  };
  Tape& tape_;
  bool in_place_ = false;
  std::vector<GradNode*> fresh_;
  std::vector<Pending> pending_;
  std::vector<Tensor> scratch_;
};

class Tape {
 public:
  /// Gradients of the outputs; undefined where none arrived.
  using Backward = std::function<void(Tape&, std::span<const Tensor> grads)>;

  /// With `record` false nothing is remembered and no Var needs a gradient (evaluation).
  explicit Tape(const Context& ctx, bool record = true) : ctx_(ctx), record_(record) {}
  Tape(const Tape&) = delete;
  const Context& ctx() const { return ctx_; }
  bool recording() const { return record_; }

  /// A value without a gradient.
  Var constant(Tensor value) const { return Var(std::move(value)); }
  /// A leaf whose gradient is kept.
  Var leaf(Tensor value) const;
  /// The Var of a parameter, the same node for every use on this tape.
  Var parameter(Parameter& p);
  /// Called with each trainable parameter that is used on a tape that does not record.
  void on_parameter_use(std::function<void(Parameter&)> hook) { used_ = std::move(hook); }

  /// Remembers one op. Returns a Var for each output; they need gradients if any input does. `backward` must hold what
  /// it needs by value and skips nothing: it runs when at least one output received a gradient.
  std::vector<Var> record(std::vector<Tensor> outputs, const std::vector<Var>& inputs, Backward backward);
  Var record(Tensor output, const std::vector<Var>& inputs, Backward backward);

  /// Runs all closures in reverse from d loss = 1 (loss has one element). Afterwards the tape is empty.
  void backward(const Var& loss);
  /// The same from given gradients of several Vars.
  void backward(const std::vector<Var>& outputs, const std::vector<Tensor>& grads);

  /// Hands over a gradient: kept as it is when it is the first, else added. The caller must not use `grad` afterwards.
  void give(const Var& v, Tensor grad);
  /// Accumulator in acc_t of the value's type, zero at first, to be added to in place: the gradient of weights. For a
  /// Parameter it is the entry of the flat gradient buffer.
  Tensor accumulator(const Var& v);

  /// Called when the last recorded use of a parameter has run in backward.
  void on_parameter_ready(std::function<void(Parameter&)> hook) { ready_ = std::move(hook); }

 private:
  struct Entry {
    std::vector<std::shared_ptr<GradNode>> outputs;
    std::vector<std::shared_ptr<GradNode>> inputs;
    Backward backward;
  };
  void run_backward();
  friend class GradientWriter;
  Context ctx_;
  bool record_;
  std::vector<Entry> entries_;
  std::unordered_map<Parameter*, std::shared_ptr<GradNode>> parameters_;
  std::function<void(Parameter&)> ready_, used_;
};

/// `grad` or, where undefined, zeros of the given shape and type.
Tensor or_zeros(const Context& ctx, const Tensor& grad, const Shape& shape, DType dtype);

}  // namespace tactus
