// Kernels without an autograd function: CUDA against the CPU, and twice against itself.
#include <cmath>
#include <limits>

#include "kernels/pointwise.h"
#include "kernels/reduce.h"
#include "tests/ops/case.h"
#include "tests/ops/cuda_context.h"
#include "tests/ops/kernel_runs.h"

namespace tactus::testing_ops {
namespace {

class CudaKernels : public NeedsCuda<testing::TestWithParam<KernelRun>> {
 protected:
  void compare_with_cpu(DType dtype, double tolerance) const {
    const KernelResult expected = GetParam().run(Context::cpu(2), DType::f32), got = GetParam().run(cuda(), dtype);
    ASSERT_EQ(got.real.size(), expected.real.size());
    for (size_t i = 0; i < got.real.size(); ++i) {
      EXPECT_LE(relative_difference(got.real[i], expected.real[i], 1e-3), tolerance) << "result " << i;
    }
    EXPECT_EQ(got.exact, expected.exact);
  }
};

TEST_P(CudaKernels, SingleMatchesCpu) { compare_with_cpu(DType::f32, 1e-4); }

TEST_P(CudaKernels, BrainFloatMatchesCpu) { compare_with_cpu(DType::bf16, 4e-2); }

TEST_P(CudaKernels, TwiceBitwiseEqual) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const KernelResult a = GetParam().run(cuda(), dtype), b = GetParam().run(cuda(), dtype);
    EXPECT_EQ(a.real, b.real) << to_string(dtype);
    EXPECT_EQ(a.exact, b.exact) << to_string(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, CudaKernels, testing::ValuesIn(kernel_runs()),
                         [](const testing::TestParamInfo<KernelRun>& info) { return info.param.name; });

class CudaSingleKernels : public NeedsCuda<testing::Test> {};

TEST_F(CudaSingleKernels, CastRoundsAsTheHostDoes) {
#if defined(TACTUS_WITH_CUDA)
  Rng rng(31);
  std::vector<float> values{
      0.0f, -0.0f, 1.00390625f, 1.01171875f, 3e38f, 1e-40f, std::numeric_limits<float>::infinity()};
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(rng.normal()));
  const int64_t n = static_cast<int64_t>(values.size());
  const Tensor x = cuda().upload(values), y = cuda().empty({n}, DType::bf16);
  cast<Cuda, float, bf16>(cuda(), n, x.data<const float>(), y.data<bf16>());
  const std::vector<bf16> got = cuda().download<bf16>(y);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(got[i].bits, bf16(values[i]).bits) << values[i];
#endif
}

TEST_F(CudaSingleKernels, NormSeesEveryNonFiniteValue) {
#if defined(TACTUS_WITH_CUDA)
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (size_t at : {size_t{0}, size_t{5000}, size_t{10006}}) {
      std::vector<float> values(10007, 0.5f);
      values[at] = bad;
      const Tensor x = cuda().upload(values);
      EXPECT_FALSE(std::isfinite(squared_norm<Cuda, float>(cuda(), 10007, x.data<const float>()))) << at;
    }
  }
#endif
}

}  // namespace
}  // namespace tactus::testing_ops
