// Weights under official names and back.
#include "train/convert/official_weights.h"

#include "core/error.h"
#include "tests/laws/model_laws.h"

namespace tactus::laws {
namespace {

class OfficialWeights : public LawSuite {
 protected:
  const Context& ctx() const { return shared_context(GetParam().device); }
};

TEST_P(OfficialWeights, RoundTrip) {
  Speech model(ctx(), GetParam(), 11);
  const std::vector<double> before = ctx().download_real(model.store().flat_master());
  OfficialTensors tensors = ours_to_official(model.store(), OfficialContent::weights, {5, 3});
  int64_t numbers = 0;
  for (const auto& [name, t] : tensors) {
    EXPECT_EQ(name.find("qkv"), std::string::npos) << name;
    numbers += static_cast<int64_t>(t.values.size());
  }
  EXPECT_EQ(numbers, model.store().count());
  EXPECT_EQ(tensors.at("encoder.subsample.conv_layers.1.weight").shape, (std::vector<int64_t>{48, 8, 3}));
  tensors["decoder.version"] = {{1}, {3}};
  if (GetParam().widths == Widths::odd)  // tied: checkpoints hold the matrix under both names
    tensors["decoder.output_projection.weight"] = tensors.at("decoder.embed_tokens.weight");
  model.store().initialise(4);
  EXPECT_NE(ctx().download_real(model.store().flat_master()), before);
  official_to_ours(model.store(), tensors);
  EXPECT_EQ(ctx().download_real(model.store().flat_master()), before);
}

TEST_P(OfficialWeights, WhatDoesNotFitIsNamed) {
  Speech model(ctx(), GetParam(), 11);
  const OfficialTensors good = ours_to_official(model.store(), OfficialContent::weights, {5, 3});
  auto message = [&](const OfficialTensors& tensors) -> std::string {
    try {
      official_to_ours(model.store(), tensors);
    } catch (const DataError& e) {
      return e.what();
    }
    return "accepted";
  };
  const std::string name = "encoder.transformer_layers.0.self_attn.k_proj.bias";
  OfficialTensors bad = good;
  bad.erase(name);
  EXPECT_EQ(message(bad), "weights: " + name + " is missing");
  bad = good;
  bad.at(name) = {{7}, std::vector<double>(7)};
  EXPECT_EQ(message(bad), "weights: " + name + " is [7], expected [24]");
  bad = good;
  bad["decoder.layers.9.fc1.bias"] = {{1}, {0}};
  EXPECT_EQ(message(bad), "weights: the model has no place for decoder.layers.9.fc1.bias [1]");
  if (GetParam().widths == Widths::odd) {
    bad = good;
    bad["decoder.output_projection.weight"] = bad.at("decoder.embed_tokens.weight");
    bad.at("decoder.output_projection.weight").values[5] += 1;
    EXPECT_NE(message(bad).find("differs from decoder.embed_tokens.weight"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, OfficialWeights, ::testing::ValuesIn(cases(Device::cpu, {2})), case_name);

}  // namespace
}  // namespace tactus::laws
