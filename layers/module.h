// What modules share: named registration of parameters, and the state of one forward pass.
#pragma once

#include <map>
#include <string>

#include "autograd/tape.h"
#include "core/rng.h"

namespace tactus {

/// A place in the tree of modules; gives parameters their dotted names.
class Scope {
 public:
  Scope(ParameterStore& store, std::string path = "") : store_(&store), path_(std::move(path)) {}
  Scope operator/(const std::string& name) const { return {*store_, join(name)}; }
  Parameter& add(const std::string& name, Shape shape, Init init) const { return store_->add(join(name), shape, init); }
  void alias(const std::string& name, Parameter& p) const { store_->alias(join(name), p); }
  const std::string& path() const { return path_; }

 private:
  std::string join(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }
  ParameterStore* store_;
  std::string path_;
};

/// Constant tables computed on the host in double and kept on the device, grown when a longer sequence comes.
class Tables {
 public:
  explicit Tables(const Context& ctx) : ctx_(ctx) {}
  /// RoPE cos/sin pairs [>= positions, dim].
  const Tensor& rope(int64_t positions, int64_t dim, double theta, DType acc);
  /// Codes of chunk numbers [>= chunks, width] in type `dtype`.
  const Tensor& chunk_code(int64_t chunks, int64_t width, DType dtype);
  /// Encoder positions in fairseq's layout [sin | cos], denominator width/2 - 1; row m is position first + m (position
  /// 1, the padding row, is zero).
  const Tensor& sinusoid(int64_t rows, int64_t width, int64_t first, DType acc);

 private:
  template <class Make>
  const Tensor& grown(const std::string& key, int64_t rows, Make make);
  Context ctx_;
  std::map<std::string, Tensor> tables_;
};

/// One forward pass over one batch.
struct Pass {
  Tape& tape;
  Tables& tables;
  bool training = false;  ///< dropout on
  uint64_t key = 0;       ///< mixed from seed, update and micro-batch

  const Context& ctx() const { return tape.ctx(); }
  Var param(Parameter* p) const { return p ? tape.parameter(*p) : Var(); }
  /// Key of dropout slot `slot` of the module whose path hashes to `path`.
  DropoutKey dropout(uint64_t path, uint64_t slot, double p) const {
    return training && p > 0 ? DropoutKey{mix_key(mix_key(key, path), slot), static_cast<float>(p)} : DropoutKey{};
  }
};

}  // namespace tactus
