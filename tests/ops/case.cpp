#include "tests/ops/case.h"

#include <cmath>
#include <stdexcept>

#include "autograd/recompute.h"

namespace tactus::testing_ops {
namespace {

double rounded(double x) { return static_cast<float>(bf16(static_cast<float>(x))); }

void round_all(std::vector<double>& values) {
  for (double& v : values) v = rounded(v);
}

/// The inputs of a case without running backward; values as drawn.
std::vector<InputValues> draw_inputs(const Context& ctx, DType dtype, const OpCase& c) {
  Tape tape(ctx, false);
  Bench bench(tape, dtype, hash_path(c.name));
  c.build(bench);
  return bench.values();
}

std::vector<Var> build(Tape& tape, DType dtype, const OpCase& c, const RunOptions& options, std::vector<Var>& leaves) {
  if (!options.recompute) {
    Bench bench(tape, dtype, hash_path(c.name), options.inputs);
    std::vector<Var> outputs = c.build(bench);
    leaves = bench.inputs();
    return outputs;
  }
  for (const InputValues& in : options.inputs) {
    leaves.push_back(tape.leaf(tape.ctx().upload_real(in.values, in.shape, dtype)));
  }
  return recompute(tape, leaves, [&c, dtype, inputs = options.inputs](Tape& inner, const std::vector<Var>& given) {
    Bench bench(inner, dtype, hash_path(c.name), inputs, given);
    return c.build(bench);
  });
}

}  // namespace

Var Bench::next(Shape shape, const std::function<double(int64_t)>& draw) {
  const size_t i = inputs_.size();
  InputValues in{{}, shape};
  for (int64_t k = 0; k < shape.elements(); ++k)
    in.values.push_back(draw(k));  // drawn in any case: the generator moves on
  if (i < stored_.size()) in = stored_[i];
  inputs_.push_back(i < given_.size() ? given_[i] : tape.leaf(ctx().upload_real(in.values, shape, dtype)));
  values_.push_back(std::move(in));
  return inputs_.back();
}

Var Bench::input(Shape shape, double deviation) {
  return next(shape, [&](int64_t) { return deviation * rng.normal(); });
}

Var Bench::input_off_zero(Shape shape) {
  return next(shape, [&](int64_t) {
    const double magnitude = 0.2 + rng.uniform();
    return rng.below(2) ? magnitude : -magnitude;
  });
}

Var Bench::input_of(Shape shape, const std::function<double(int64_t)>& f) { return next(shape, f); }

Tensor Bench::constant(Shape shape, double low, double high) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& v : values) v = rounded(low + (high - low) * rng.uniform());
  return ctx().upload_real(values, shape, accumulator_of(dtype));
}

std::vector<int32_t> Bench::integers(int64_t n, int64_t bound) {
  std::vector<int32_t> out(static_cast<size_t>(n));
  for (int32_t& v : out) v = static_cast<int32_t>(rng.below(static_cast<uint64_t>(bound)));
  return out;
}

Segments Bench::segments(const std::vector<int64_t>& lengths) const {
  // Utterance ids that are not 0, 1, 2, ...: masks are keyed by them.
  std::vector<int32_t> ids;
  for (size_t i = 0; i < lengths.size(); ++i) ids.push_back(static_cast<int32_t>(900 - 7 * i));
  return Segments(ctx(), lengths, ids);
}

const std::vector<OpCase>& all_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    add_dense_cases(all);
    add_pointwise_cases(all);
    add_sequence_cases(all);
    add_loss_cases(all);
    return all;
  }();
  return cases;
}

const OpCase& find_case(const std::string& name) {
  for (const OpCase& c : all_cases()) {
    if (c.name == name) return c;
  }
  throw std::out_of_range("no case is called " + name);
}

std::vector<std::string> case_names(bool (*wanted)(const OpCase&)) {
  std::vector<std::string> names;
  for (const OpCase& c : all_cases()) {
    if (wanted(c)) names.push_back(c.name);
  }
  return names;
}

std::vector<double> output_weights(const OpCase& c, size_t output, size_t elements) {
  Rng rng(mix_key(hash_path(c.name), 1000 + output));
  std::vector<double> w(elements);
  for (double& v : w) v = rng.normal();
  return w;
}

RunResult run_case(const Context& ctx, DType dtype, const OpCase& c, const RunOptions& options) {
  RunOptions filled = options;
  if (filled.inputs.empty()) filled.inputs = draw_inputs(ctx, dtype, c);
  if (options.round_to_bf16) {
    for (InputValues& in : filled.inputs) round_all(in.values);
  }
  RunResult result;
  result.inputs = filled.inputs;
  Tape tape(ctx, filled.backward);
  std::vector<Var> leaves;
  std::vector<Var> outputs = build(tape, dtype, c, filled, leaves);
  std::vector<Tensor> weights;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i].value();
    result.outputs.push_back(ctx.download_real(y));
    if (!filled.backward) continue;
    std::vector<double> w = output_weights(c, i, result.outputs.back().size());
    if (options.round_to_bf16) round_all(w);
    weights.push_back(ctx.upload_real(w, y.shape(), y.dtype()));
  }
  if (!filled.backward) return result;
  tape.backward(outputs, weights);
  for (const Var& leaf : leaves) {
    result.grads.push_back(leaf.grad().defined() ? ctx.download_real(leaf.grad())
                                                 : std::vector<double>(static_cast<size_t>(leaf.value().elements())));
  }
  return result;
}

double weighted_output(const OpCase& c, const RunResult& result) {
  double sum = 0;
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const std::vector<double> w = output_weights(c, i, result.outputs[i].size());
    for (size_t k = 0; k < w.size(); ++k) sum += w[k] * result.outputs[i][k];
  }
  return sum;
}

double largest(const std::vector<double>& values) {
  double top = 0;
  for (double v : values) top = std::max(top, std::abs(v));
  return top;
}

double largest(const std::vector<std::vector<double>>& values) {
  double top = 0;
  for (const auto& v : values) top = std::max(top, largest(v));
  return top;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b, double floor) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // equal infinities too
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst == 0 ? 0 : worst / std::max(largest(b), floor);
}

bool all_finite(const std::vector<std::vector<double>>& values) {
  for (const auto& list : values) {
    for (double v : list) {
      if (!std::isfinite(v)) return false;
    }
  }
  return true;
}

}  // namespace tactus::testing_ops
