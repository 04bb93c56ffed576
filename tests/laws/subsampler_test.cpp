// Lengths after the convolutional front end.
#include "layers/blocks/subsampler.h"

#include "layers/blocks/feature_front_end.h"
#include "tests/laws/laws.h"

namespace tactus::laws {
namespace {

/// Windows of `kernel` taps every `stride` rows that fit into the padded sequence, by trying.
int64_t windows(int64_t length, int64_t kernel, int64_t stride, int64_t pad) {
  int64_t n = 0;
  for (int64_t begin = -pad; length > 0 && begin + kernel <= length + pad; begin += stride) ++n;
  return n;
}

/// A sequence passed for long enough, or refused as too short, by a formula that is a few frames off: the formula, the
/// rows that really come out and the segments agree for every length, alone and packed.
TEST(Subsampler, LengthFormulaEqualsTheRowsThatComeOut) {
  const Context& ctx = shared_context(Device::cpu);
  constexpr int64_t kIn = 3, kOut = 4;
  const std::vector<std::vector<int64_t>> kernels = {{5, 5}, {3, 3},    {1},          {2}, {5},
                                                     {4, 4}, {7, 3, 3}, {3, 3, 3, 3}, {41}};
  for (const std::vector<int64_t>& k : kernels) {
    for (int64_t stride : {1, 2, 3}) {
      ParameterStore store;
      const ConvSubsampler subsampler(Scope(store, "s"), kIn, 6, kOut, k, stride);
      store.allocate(ctx, DType::f32, false);
      store.initialise(1);
      std::vector<int64_t> lengths, expected;
      for (int64_t t = 0; t <= 40; ++t) {
        int64_t n = t;
        for (int64_t kernel : k) n = windows(n, kernel, stride, kernel / 2);
        EXPECT_EQ(subsampler.out_length(t), n) << "length " << t << " kernel " << k[0] << " stride " << stride;
        lengths.push_back(t), expected.push_back(n);
      }
      const auto run = [&](const std::vector<int64_t>& of) {
        Tape tape(ctx, false);
        Tables tables(ctx);
        Pass pass{tape, tables};
        const Tensor x = ctx.upload_real(normals(sum_of(of) * kIn, 1), {sum_of(of), kIn}, DType::f32);
        const ConvSubsampler::Output o = subsampler(pass, tape.constant(x), Segments(ctx, of));
        EXPECT_EQ(o.rows.value().rows(), sum_of(o.segments.lengths()));
        for (double v : ctx.download_real(o.rows.value())) EXPECT_TRUE(std::isfinite(v));
        return o.segments.lengths();
      };
      EXPECT_EQ(run(lengths), expected);
      for (int64_t t = 0; t <= 40; t += 1 + t / 8) EXPECT_EQ(run({t}), std::vector<int64_t>{expected[t]}) << t;
    }
  }
}

/// The mixture of layers and the projection before it keep every row.
TEST(Subsampler, FeatureFrontEndsKeepTheirRows) {
  const Context& ctx = shared_context(Device::cpu);
  for (const auto& [layers, projection] : {std::pair<int64_t, int64_t>{1, 0}, {1, 5}, {3, 0}, {3, 5}}) {
    ParameterStore store;
    const FeatureFrontEnd front(Scope(store, "f"), 12, layers, projection);
    store.allocate(ctx, DType::f32, false);
    store.initialise(1);
    for (int64_t t = 0; t <= 40; ++t) {
      Tape tape(ctx, false);
      Tables tables(ctx);
      Pass pass{tape, tables};
      const Var y = front(pass, tape.constant(ctx.upload_real(normals(12 * t, 2), {t, 12}, DType::f32)));
      EXPECT_EQ(y.value().rows(), t);
      EXPECT_EQ(y.value().cols(), front.width());
    }
  }
}

}  // namespace
}  // namespace tactus::laws
