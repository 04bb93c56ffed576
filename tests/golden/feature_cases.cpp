// Features of audio and their normalisation: host code, the same on every device.
#include "data/batches/normalise.h"
#include "data/batches/specaugment.h"
#include "data/features.h"
#include "tests/golden/check.h"
#if defined(TACTUS_WITH_AUDIO)
#include "data/audio/fbank.h"
#endif

namespace tactus::golden {
namespace {

std::vector<float> single(const Array& a) { return {a.values.begin(), a.values.end()}; }
std::vector<double> wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }

}  // namespace

void check_fbank(const Setting&, const Node& object, Report& report) {
  report.begin_case();
#if defined(TACTUS_WITH_AUDIO)
  FeatureOptions o;
  o.mel_bins = object.integer("mel_bins");
  o.low_hz = object.real("low_freq");
  o.high_hz = object.real("high_freq");
  const std::vector<float> wave = single(object.array("wav_int16"));
  const Fbank povey(o);
  report.special(object.path() + "/mel_banks_80x256", povey.mel_weights(), object.array("mel_banks_80x256").values,
                 1e-4);
  for (const char* name : {"st_povey_f32", "st_povey_f64"})
    report.special(object.path() + "/" + name, wide(povey.compute(wave)), object.array(name).values, 3e-4);
  o.window = "hamming";
  report.special(object.path() + "/slu_hamming_f32", wide(Fbank(o).compute(wave)),
                 object.array("slu_hamming_f32").values, 3e-4);
#else
  report.skip(object.path() + " filter banks", "built without audio");
#endif
  const Array features = object.array("st_povey_f32");
  std::vector<float> normalised = single(features);
  apply_cmvn(normalised.data(), features.dim(0), features.dim(1));
  report.special(object.path() + "/cmvn_f32", wide(normalised), object.array("cmvn_f32").values, 1e-3);
}

void check_specaug(const Setting&, const Node& object, Report& report) {
  report.begin_case();
  const Array features = object.sibling("fbank").array("cmvn_f32");
  const std::vector<int32_t> draw = object.tokens("f_f0_t_t0");
  SpecAugmentMasks masks;
  masks.frequency = {{draw.at(1), draw.at(0)}};
  masks.time = {{draw.at(3), draw.at(2)}};
  std::vector<float> got = single(features);
  apply_masks(masks, got.data(), features.dim(0), features.dim(1));
  report.special(object.path() + "/out", wide(got), object.array("out").values, 1e-6);
}

}  // namespace tactus::golden
