// Runs every case of the table on CUDA against the CPU, twice against itself, and recomputed.
#include "tests/ops/case.h"
#include "tests/ops/cuda_context.h"

namespace tactus::testing_ops {
namespace {

struct Tolerance {
  double forward, backward;
};
constexpr Tolerance kSingle{1e-4, 1e-4}, kBrain{4e-2, 5e-2};

class CudaOps : public NeedsCuda<testing::TestWithParam<std::string>> {
 protected:
  const OpCase& op_case() const { return find_case(GetParam()); }

  void compare_with_cpu(DType dtype, Tolerance tolerance, double grad_floor_share) const {
    RunOptions options;
    options.round_to_bf16 = dtype == DType::bf16;
    const RunResult expected = run_case(Context::cpu(2), DType::f32, op_case(), options);
    options.inputs = expected.inputs;
    const RunResult got = run_case(cuda(), dtype, op_case(), options);
    ASSERT_EQ(got.outputs.size(), expected.outputs.size());
    for (size_t i = 0; i < got.outputs.size(); ++i) {
      EXPECT_LE(relative_difference(got.outputs[i], expected.outputs[i], 1e-3), tolerance.forward) << "output " << i;
    }
    const double floor = grad_floor_share * largest(expected.grads);
    for (size_t i = 0; i < got.grads.size(); ++i) {
      EXPECT_LE(relative_difference(got.grads[i], expected.grads[i], floor), tolerance.backward)
          << "gradient of input " << i;
    }
  }

  void expect_repeatable(DType dtype, bool recompute) const {
    RunOptions options;
    const RunResult a = run_case(cuda(), dtype, op_case(), options);
    options.recompute = recompute;
    const RunResult b = run_case(cuda(), dtype, op_case(), options);
    EXPECT_EQ(a.outputs, b.outputs) << to_string(dtype);
    EXPECT_EQ(a.grads, b.grads) << to_string(dtype);
  }
};

TEST_P(CudaOps, SingleMatchesCpu) { compare_with_cpu(DType::f32, kSingle, 1e-3); }

TEST_P(CudaOps, BrainFloatMatchesCpu) { compare_with_cpu(DType::bf16, kBrain, 1); }

TEST_P(CudaOps, TwiceBitwiseEqual) {
  for (DType dtype : {DType::f32, DType::bf16}) expect_repeatable(dtype, false);
}

TEST_P(CudaOps, RecomputeBitwiseEqual) {
  for (DType dtype : {DType::f32, DType::bf16}) expect_repeatable(dtype, true);
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaOps, testing::ValuesIn(case_names([](const OpCase&) { return true; })),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace tactus::testing_ops
