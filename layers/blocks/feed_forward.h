#pragma once

#include "autograd/dropout.h"
#include "layers/blocks/basic.h"

namespace tactus {

/// fc2(dropout(ReLU(fc1(x)))), Vaswani et al. 2017.
class FeedForward {
 public:
  FeedForward() = default;
  FeedForward(const Scope& scope, int64_t width, int64_t hidden, double activation_dropout)
      : fc1_(scope / "fc1", width, hidden, true),
        fc2_(scope / "fc2", hidden, width, true),
        path_(hash_path(scope.path() + ".ffn")),
        activation_dropout_(activation_dropout) {}
  Var operator()(Pass& pass, const Var& x, const Segments& segments) const {
    const DropoutKey key = pass.dropout(path_, 0, activation_dropout_);
    return fc2_(pass, relu_dropout(pass.tape, fc1_(pass, x), key, segments));
  }

 private:
  Linear fc1_, fc2_;
  uint64_t path_ = 0;
  double activation_dropout_ = 0;
};

}  // namespace tactus
