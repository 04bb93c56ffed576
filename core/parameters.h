// Parameters in flat buffers: one buffer for each of master weights, working copy and gradients, so that clipping, the
// finite check, Adam, averaging and hashing are one pass each. Entries are aligned to 256 bytes and laid in reverse
// order of registration, which is roughly the order in which backward completes them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/rng.h"

namespace tactus {

/// How a parameter starts. Draws happen on the CPU, keyed by seed and the parameter's name.
struct Init {
  enum class Kind { zeros, ones, uniform, normal } kind = Kind::zeros;
  double scale = 0;  ///< bound of the uniform, standard deviation of the normal
  /// Rows from here on start at zero (-1: none): the padding row of an embedding.
  int64_t zero_row = -1;
  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones, 1}; }
  static Init uniform(double bound) { return {Kind::uniform, bound}; }
  static Init normal(double deviation, int64_t zero_row = -1) { return {Kind::normal, deviation, zero_row}; }
};

struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  Tensor value;        ///< compute type: what forward reads
  Tensor master;       ///< acc type; shares storage with value where the compute type is the acc type
  Tensor grad;         ///< acc type; undefined without training
  int64_t offset = 0;  ///< in elements of the flat buffers
  bool trainable = true;
};

class ParameterStore {
 public:
  ParameterStore() = default;
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  /// Registers a parameter; names are unique ("decoder.layers.0.fc1.weight"). The reference stays valid.
  Parameter& add(const std::string& name, Shape shape, Init init);
  /// A second name of one parameter (tied weights).
  void alias(const std::string& name, Parameter& parameter);
  /// Makes the buffers. With training false there are no masters beyond the working copy and no gradients.
  void allocate(const Context& ctx, DType compute, bool training);
  /// Draws every parameter from its Init.
  void initialise(uint64_t seed);

  Parameter* find(const std::string& name);
  std::vector<Parameter*> all();               ///< in order of registration
  int64_t count() const;                       ///< numbers in all parameters
  int64_t flat_size() const { return size_; }  ///< with padding between entries (always zero)
  const Tensor& flat_master() const { return master_; }
  const Tensor& flat_grad() const { return grad_; }
  const Tensor& flat_value() const { return value_; }
  DType compute_type() const { return compute_; }
  const Context& context() const { return *ctx_; }

  /// Host values of one parameter in row-major order, and back (masters and working copy).
  std::vector<double> read(const Parameter& parameter) const;
  void write(Parameter& parameter, const std::vector<double>& values);
  /// Renews the working copy from the masters.
  void refresh_working_copy();
  void zero_grad();

 private:
  std::deque<Parameter> parameters_;
  std::map<std::string, Parameter*> names_;
  std::optional<Context> ctx_;
  DType compute_ = DType::f32;
  int64_t size_ = 0;
  Tensor master_, grad_, value_;
};

}  // namespace tactus
