// What stands between stored features and the convolutions: the weighted sum of the layers of a self-supervised encoder
// and a projection to a small width (the MTLA paper's front end on WavLM).
#pragma once

#include "layers/blocks/basic.h"

namespace tactus {

class FeatureFrontEnd {
 public:
  FeatureFrontEnd() = default;
  /// Frames of `features` numbers: `layers` layers side by side, summed with softmax weights that start equal where
  /// layers > 1; then Linear and LayerNorm to `projection` numbers where that is not 0.
  FeatureFrontEnd(const Scope& scope, int64_t features, int64_t layers, int64_t projection);
  int64_t width() const { return width_; }
  Var operator()(Pass& pass, const Var& features) const;

 private:
  int64_t width_ = 0;
  Parameter* layer_weights_ = nullptr;
  bool projects_ = false;
  Linear projection_;
  LayerNorm norm_;
};

}  // namespace tactus
