// Convolutional front end of speech encoders: strided 1-D convolutions, each followed by a gated linear unit (fairseq's
// s2t subsampler).
#pragma once

#include <vector>

#include "core/segments.h"
#include "layers/module.h"

namespace tactus {

class ConvSubsampler {
 public:
  ConvSubsampler() = default;
  /// Kernel k has padding k / 2 and stride 2. Every convolution but the last gives `channels` / 2 after its gate, the
  /// last `out`.
  ConvSubsampler(const Scope& scope, int64_t in, int64_t channels, int64_t out, const std::vector<int64_t>& kernels,
                 int64_t stride);
  /// Rows that come out of `length` rows: the one formula for filters, CTC and loaders.
  int64_t out_length(int64_t length) const;
  struct Output {
    Var rows;
    Segments segments;
  };
  Output operator()(Pass& pass, const Var& x, const Segments& segments) const;

 private:
  struct Layer {
    Parameter *weight, *bias;
    int64_t kernel;
  };
  std::vector<Layer> layers_;
  int64_t stride_ = 2;
};

}  // namespace tactus
