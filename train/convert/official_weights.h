// Weights under the names and shapes of the published MTLA checkpoints (the fairseq fork of Deng et al. 2025; the
// tables of `model` in a checkpoint file) and under ours. Three things differ:
//   - q_proj, k_proj, v_proj are one matrix here, `qkv`, with the rows of the three one after another;
//   - wkv_b holds, there, for each head its key rows, then its value rows; here the key rows of all heads, then the
//     value rows of all heads;
//   - convolutions are [out, in, kernel] there and [out, kernel * in], tap-major, here.
// Everything else has the same name and shape. Head counts and widths follow from the shapes of neighbouring weights,
// so no configuration is needed. The same maps hold for gradients.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/parameters.h"

namespace tactus {

/// A tensor as a checkpoint holds it, row-major.
struct OfficialTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
using OfficialTensors = std::map<std::string, OfficialTensor>;

/// Writes every parameter of `store` (masters and working copy). DataError names a tensor that is missing, has another
/// shape, or has no place in the model; `*.version` scalars are passed over, and where the output projection is tied
/// its copy must equal the embedding.
void official_to_ours(ParameterStore& store, const OfficialTensors& tensors);

enum class OfficialContent { weights, gradients };
/// The inverse. A parameter with two names appears once, under the first. `conv_kernels`: taps of the convolutions
/// `conv_layers.0`, `.1`, ...
OfficialTensors ours_to_official(ParameterStore& store, OfficialContent content,
                                 const std::vector<int64_t>& conv_kernels);

}  // namespace tactus
