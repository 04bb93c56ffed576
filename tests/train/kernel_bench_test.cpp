#include "train/bench/kernel_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/files/json.h"
#include "tests/train/run_test_util.h"

namespace tactus {
namespace {

KernelBenchOptions tiny(DType dtype, const std::string& filter = "") {
  KernelBenchOptions o;
  o.dtype = dtype;
  o.filter = filter;
  o.seconds = 1e-4;
  o.rows = 200;
  o.megabytes = 1;
  return o;
}

bool measured(const KernelBenchResult& result, const std::string& family) {
  return std::any_of(result.kernels.begin(), result.kernels.end(),
                     [&](const KernelMeasurement& k) { return k.kernel.starts_with(family); });
}

TEST(KernelBench, MeasuresEveryFamily) {
  const KernelBenchResult r = bench_kernels(tiny(DType::f64), Context::cpu(2));
  for (const char* family : {"ceiling_copy",
                             "ceiling_gemm",
                             "layer_norm_forward",
                             "layer_norm_backward",
                             "dropout_add",
                             "relu_dropout_forward",
                             "relu_dropout_backward",
                             "relu_forward",
                             "relu_backward",
                             "cross_entropy_forward",
                             "cross_entropy_backward",
                             "ctc_forward",
                             "ctc_backward",
                             "adam_step",
                             "axpby_copy",
                             "cast_to",
                             "cast_from",
                             "glu_forward",
                             "glu_backward",
                             "rope_forward",
                             "rope_backward",
                             "embedding_forward",
                             "embedding_backward",
                             "unfold",
                             "fold",
                             "gate_sum_forward",
                             "gate_sum_backward",
                             "column_sum",
                             "reduce_sum",
                             "gather_rows",
                             "scale_add_table",
                             "layer_mix_forward",
                             "layer_mix_backward_x",
                             "layer_mix_backward_weights",
                             "gemm_1536",
                             "gemm_2048",
                             "gemm_input_gradient",
                             "gemm_weight_gradient",
                             "attention_forward_encoder",
                             "attention_backward_encoder",
                             "attention_forward_decoder_mha",
                             "attention_backward_decoder_mha",
                             "attention_forward_decoder_mtla2",
                             "attention_backward_decoder_mtla2",
                             "attention_decode_mha",
                             "attention_decode_latent",
                             "tail_append",
                             "tail_reorder",
                             "topk_log_softmax"}) {
    EXPECT_TRUE(measured(r, family)) << family;
  }
  EXPECT_EQ(r.failures(), 0) << r.to_string();
  double worst = 0;
  for (const KernelMeasurement& k : r.kernels) {
    EXPECT_GT(k.seconds, 0) << k.kernel;
    EXPECT_GT(k.launches, 0) << k.kernel;
    EXPECT_NE(k.bytes > 0, k.flops > 0) << k.kernel;
    EXPECT_GT(k.share, 0) << k.kernel;
    // In f32, log-probabilities of whole utterances carry errors of their own.
    EXPECT_LT(k.error, k.kernel == "ctc_backward" ? 2e-3 : 1e-5) << k.kernel;
    EXPECT_TRUE(contains(r.to_string(), "\n" + k.kernel + " ")) << k.kernel;
    worst = std::max(worst, k.error);
  }
  EXPECT_GT(worst, 1e-9) << "f64 was compared with itself";
}

TEST(KernelBench, CeilingsComeWithAnySelection) {
  const KernelBenchOptions o = tiny(DType::f32, "glu");
  const KernelBenchResult r = bench_kernels(o, Context::cpu(1));
  ASSERT_EQ(r.kernels.size(), 4u);
  EXPECT_EQ(r.kernels[3].kernel, "glu_backward");
  EXPECT_EQ(r.kernels[3].shape, "200 x 1024");
  EXPECT_EQ(r.kernels[3].bytes, 200.0 * (512 + 2 * 1024) * 4);
  EXPECT_EQ(r.kernels[3].share, r.kernels[3].rate / r.bytes_per_second);
  EXPECT_EQ(r.kernels[0].share, 1);
  EXPECT_EQ(r.kernels[1].flops, 2.0 * 512 * 512 * 512);
  for (const KernelMeasurement& k : r.kernels) EXPECT_EQ(k.error, 0) << "the CPU in f32 is the reference";
}

TEST(KernelBench, AFailureIsALine) {
  // Too little for the large copy alone.
  const KernelBenchOptions o = tiny(DType::f32, "axpby");
  const KernelBenchResult r = bench_kernels(o, Context::cpu(1, int64_t{6} << 20));
  EXPECT_EQ(r.failures(), 1);
  EXPECT_FALSE(r.kernels[0].failure.empty());
  EXPECT_TRUE(std::isnan(r.bytes_per_second));
  EXPECT_TRUE(contains(r.to_string(), "failed: "));
  EXPECT_EQ(std::count(r.kernels[0].failure.begin(), r.kernels[0].failure.end(), '\n'), 0);
  const Json kernels = parse_json(r.to_json(o)).at("kernels");
  EXPECT_FALSE(kernels.items().at(0).at("failure").as_string().empty());
  EXPECT_GT(kernels.items().at(2).at("bytes_per_second").as_double(), 0);
  EXPECT_TRUE(std::isnan(kernels.items().at(2).at("share").as_double()));
}

TEST(KernelBench, RefusesWhatDoesNotExist) {
  EXPECT_THROW(bench_kernels(tiny(DType::bf16), Context::cpu(1)), ConfigError);
  EXPECT_THROW(bench_kernels(tiny(DType::f32, "no such kernel"), Context::cpu(1)), ConfigError);
}

TEST_F(RunTest, BenchKernelsIsACommand) {
  const Outcome r = tactus({"bench", "kernels", "--device", "cpu", "--dtype", "f32", "--filter", "layer_norm",
                            "--seconds", "0.0001", "--rows", "200", "--megabytes", "1", "--json", path("k.json")});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "layer_norm_backward"));
  const Json json = parse_json(file_text(path("k.json")));
  EXPECT_EQ(json.at("benchmark").as_string(), "kernels");
  ASSERT_EQ(json.at("kernels").items().size(), 4u);
  EXPECT_LT(json.at("kernels").items()[2].at("error").as_double(), 1e-5);
  EXPECT_EQ(tactus({"bench", "kernels", "--device", "cpu", "--dtype", "bf16"}).code, 2);
}

}  // namespace
}  // namespace tactus
