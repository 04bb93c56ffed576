#include "layers/blocks/subsampler.h"

#include <cmath>

#include "autograd/conv1d.h"
#include "autograd/pointwise.h"

namespace tactus {

ConvSubsampler::ConvSubsampler(const Scope& scope, int64_t in, int64_t channels, int64_t out,
                               const std::vector<int64_t>& kernels, int64_t stride)
    : stride_(stride) {
  if (kernels.empty()) throw ConfigError("encoder.conv_kernels: at least one convolution is needed");
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int64_t k = kernels[i], from = i == 0 ? in : channels / 2, to = i + 1 == kernels.size() ? 2 * out : channels;
    if (k < 1) throw ConfigError("encoder.conv_kernels: a kernel has at least one tap");
    const Scope s = scope / ("conv_layers." + std::to_string(i));
    const Init init = Init::uniform(1 / std::sqrt(static_cast<double>(from * k)));
    layers_.push_back({&s.add("weight", {to, k * from}, init), &s.add("bias", {to}, init), k});
  }
}

int64_t ConvSubsampler::out_length(int64_t length) const {
  for (const Layer& l : layers_) length = conv1d_length(length, l.kernel, stride_, l.kernel / 2);
  return length;
}

ConvSubsampler::Output ConvSubsampler::operator()(Pass& pass, const Var& x, const Segments& segments) const {
  Output o{x, segments};
  for (const Layer& l : layers_) {
    std::vector<int64_t> lengths = o.segments.lengths();
    for (int64_t& n : lengths) n = conv1d_length(n, l.kernel, stride_, l.kernel / 2);
    const Segments shorter(pass.ctx(), lengths, o.segments.utterances());
    const Var y = conv1d(pass.tape, o.rows, o.segments, shorter, pass.param(l.weight), pass.param(l.bias),
                         static_cast<int>(l.kernel), static_cast<int>(stride_), static_cast<int>(l.kernel / 2));
    o = {glu(pass.tape, y), shorter};
  }
  return o;
}

}  // namespace tactus
