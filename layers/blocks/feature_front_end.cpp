#include "layers/blocks/feature_front_end.h"

#include "autograd/layer_mix.h"

namespace tactus {

FeatureFrontEnd::FeatureFrontEnd(const Scope& scope, int64_t features, int64_t layers, int64_t projection)
    : width_(features / layers), projects_(projection > 0) {
  if (features % layers != 0) {
    throw ConfigError("model.feature_layers: " + std::to_string(layers) + " layers do not divide model.features " +
                      std::to_string(features));
  }
  if (layers > 1) layer_weights_ = &scope.add("layer_weights", {layers}, Init::zeros());
  if (!projects_) return;
  projection_ = Linear(scope / "projection", width_, projection, true);
  norm_ = LayerNorm(scope / "norm", projection);
  width_ = projection;
}

Var FeatureFrontEnd::operator()(Pass& pass, const Var& features) const {
  Var x = features;
  if (layer_weights_ != nullptr) x = layer_mix(pass.tape, x, pass.param(layer_weights_));
  return projects_ ? norm_(pass, projection_(pass, x)) : x;
}

}  // namespace tactus
