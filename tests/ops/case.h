// The case table: one line of description and one function for each way of calling an autograd op. Everything else
// (harness_test.cpp, harness_cuda_test.cpp) follows from the table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "core/rng.h"
#include "core/segments.h"

namespace tactus::testing_ops {

/// Host values of one input, in the order in which the case asks for them.
struct InputValues {
  std::vector<double> values;
  Shape shape;
};

/// What a case's function builds its op with. The same function runs on any device, in any type, with fresh or replaced
/// inputs: integers, segments and input values are drawn from a generator keyed by the case's name.
class Bench {
 public:
  /// `stored` empty: draw the inputs. Else they are taken from there. `given`: Vars to use as they are (recompute).
  Bench(Tape& tape, DType dtype, uint64_t key, std::vector<InputValues> stored = {}, std::vector<Var> given = {})
      : tape(tape), dtype(dtype), rng(key), stored_(std::move(stored)), given_(std::move(given)) {}

  Tape& tape;
  DType dtype;
  Rng rng;
  const Context& ctx() const { return tape.ctx(); }

  /// Standard normal times `deviation`; a leaf whose gradient is checked.
  Var input(Shape shape, double deviation = 1);
  /// Magnitudes in [0.2, 1.2] with random signs: where the derivative jumps at 0.
  Var input_off_zero(Shape shape);
  /// Values by f(i).
  Var input_of(Shape shape, const std::function<double(int64_t)>& f);
  /// Acc-type constant on the device, uniform in [low, high).
  Tensor constant(Shape shape, double low, double high);
  Tensor upload(const std::vector<int32_t>& values) const { return ctx().upload(values); }
  /// n integers below `bound`.
  std::vector<int32_t> integers(int64_t n, int64_t bound);
  Segments segments(const std::vector<int64_t>& lengths) const;
  DropoutKey dropout(float p) const { return {mix_key(77, 5), p}; }

  const std::vector<Var>& inputs() const { return inputs_; }
  const std::vector<InputValues>& values() const { return values_; }

 private:
  Var next(Shape shape, const std::function<double(int64_t)>& draw);
  std::vector<InputValues> stored_, values_;
  std::vector<Var> given_, inputs_;
};

struct OpCase {
  std::string name;  ///< unique; letters, digits, underscores
  std::string op;    ///< name of the function in autograd/*.h
  std::function<std::vector<Var>(Bench&)> build;
  /// Row counts beyond a grid's limit: too slow for finite differences and element-wise probes.
  bool large = false;
  /// An infinite input may rightly give a finite output (a saturated sigmoid).
  bool saturates = false;
  /// The first input is also tried at magnitudes up to 6e4.
  bool extreme = false;
  /// The derivative is zero or jumps somewhere by design: no finite differences.
  bool smooth = true;
};

/// All cases, from cases_*.cpp.
const std::vector<OpCase>& all_cases();
const OpCase& find_case(const std::string& name);
std::vector<std::string> case_names(bool (*wanted)(const OpCase&));

void add_dense_cases(std::vector<OpCase>& cases);      ///< linear, conv1d, embedding, layer_norm
void add_pointwise_cases(std::vector<OpCase>& cases);  ///< pointwise, dropout, rope
void add_sequence_cases(std::vector<OpCase>& cases);   ///< attention, gate_sum
void add_loss_cases(std::vector<OpCase>& cases);       ///< cross_entropy, ctc_loss, weighted_sum, recompute

/// Values and gradients of one run.
struct RunResult {
  std::vector<InputValues> inputs;
  std::vector<std::vector<double>> outputs;
  std::vector<std::vector<double>> grads;  ///< of each input; zeros where none arrived
};

/// How to run a case.
struct RunOptions {
  std::vector<InputValues> inputs;  ///< empty: draw them
  bool backward = true;
  bool recompute = false;      ///< inside autograd recompute()
  bool round_to_bf16 = false;  ///< drawn inputs and output gradients are rounded to bf16
};

/// Builds the case, runs backward from random output gradients (the same for every device and type).
RunResult run_case(const Context& ctx, DType dtype, const OpCase& c, const RunOptions& options = {});
/// Weights of the outputs in the scalar that is differentiated.
std::vector<double> output_weights(const OpCase& c, size_t output, size_t elements);
/// Sum of weight * output over all outputs.
double weighted_output(const OpCase& c, const RunResult& result);

/// max |a - b| / max(max |b|, floor). Non-finite values must agree.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b, double floor);
double largest(const std::vector<double>& values);
double largest(const std::vector<std::vector<double>>& values);
bool all_finite(const std::vector<std::vector<double>>& values);

}  // namespace tactus::testing_ops
