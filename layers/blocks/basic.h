// The small modules that everything is made of.
#pragma once

#include <cmath>

#include "autograd/layer_norm.h"
#include "autograd/linear.h"
#include "layers/module.h"

namespace tactus {

/// Affine map y = x W^T + b; W [out, in]. Default initialisation: uniform in +-1/sqrt(in) for both.
class Linear {
 public:
  Linear() = default;
  Linear(const Scope& scope, int64_t in, int64_t out, bool bias, Init weight_init) {
    weight_ = &scope.add("weight", {out, in}, weight_init);
    if (bias) bias_ = &scope.add("bias", {out}, Init::zeros());
  }
  Linear(const Scope& scope, int64_t in, int64_t out, bool bias) {
    const Init init = Init::uniform(1 / std::sqrt(static_cast<double>(in)));
    weight_ = &scope.add("weight", {out, in}, init);
    if (bias) bias_ = &scope.add("bias", {out}, init);
  }
  Var operator()(Pass& pass, const Slice& x, const LinearOptions& options = {}) const {
    return linear(pass.tape, x, pass.param(weight_), pass.param(bias_), options);
  }
  Parameter& weight() const { return *weight_; }

 private:
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
};

/// Layer normalisation with weight 1 and bias 0 at the start.
class LayerNorm {
 public:
  LayerNorm() = default;
  LayerNorm(const Scope& scope, int64_t width, double eps = 1e-5)
      : gamma_(&scope.add("weight", {width}, Init::ones())),
        beta_(&scope.add("bias", {width}, Init::zeros())),
        eps_(eps) {}
  Var operator()(Pass& pass, const Slice& x) const {
    return layer_norm(pass.tape, x, pass.param(gamma_), pass.param(beta_), eps_);
  }

 private:
  Parameter* gamma_ = nullptr;
  Parameter* beta_ = nullptr;
  double eps_ = 1e-5;
};

}  // namespace tactus
