// The kinds of objects that can be checked. Each function reads what it needs from the object's attributes, runs every
// case below it and reports.
#pragma once

#include "layers/module.h"
#include "tests/golden/report.h"

namespace tactus::golden {

/// Where the checks run, and the type of activations and working weights.
struct Setting {
  Context ctx;
  DType dtype;
  /// Values of an array as a tensor in the compute type.
  Tensor upload(const std::vector<double>& values, Shape shape) const { return ctx.upload_real(values, shape, dtype); }
  Tensor upload(const Array& a) const { return upload(a.values, {a.elements() / a.shape.back(), a.shape.back()}); }
};

/// kind mha, mqa, gqa, mla, mtla
void check_attention(const Setting& setting, const Node& object, Report& report);
/// kind model_st, model_asr: sentence by sentence, packed, decoded
void check_model(const Setting& setting, const Node& object, Report& report);

void check_chunk_code(const Setting& setting, const Node& object, Report& report);
void check_hyper_network(const Setting& setting, const Node& object, Report& report);
void check_masks(const Setting& setting, const Node& object, Report& report);
void check_rope(const Setting& setting, const Node& object, Report& report);
void check_sinusoid(const Setting& setting, const Node& object, Report& report);
void check_conv_subsampler(const Setting& setting, const Node& object, Report& report);

void check_label_smoothed_ce(const Setting& setting, const Node& object, Report& report);
void check_ctc(const Setting& setting, const Node& object, Report& report);
void check_adam(const Setting& setting, const Node& object, Report& report);
void check_clip_norm(const Setting& setting, const Node& object, Report& report);
void check_inverse_sqrt(const Setting& setting, const Node& object, Report& report);
void check_fbank(const Setting& setting, const Node& object, Report& report);
void check_specaug(const Setting& setting, const Node& object, Report& report);

}  // namespace tactus::golden
