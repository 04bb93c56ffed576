#include "core/parameters.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tactus {
namespace {

bool aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw()) % 256 == 0; }

/// Context::zeros of bf16 works on the CPU though no kernel computes in it.
void fill(ParameterStore& store, const Context& ctx, DType compute, bool training) {
  store.add("encoder.weight", {5, 7}, Init::uniform(0.5));
  store.add("encoder.bias", {5}, Init::zeros());
  Parameter& embedding = store.add("embedding", {11, 3}, Init::normal(2, 1));
  store.alias("output.weight", embedding);
  store.allocate(ctx, compute, training);
  store.initialise(4);
}

TEST(ParameterStore, EntriesAreAlignedAndInReverseOrder) {
  const Context ctx = Context::cpu(1);
  ParameterStore store;
  fill(store, ctx, DType::f32, true);
  ASSERT_EQ(store.all().size(), 3u);
  for (Parameter* p : store.all()) {
    EXPECT_TRUE(aligned(p->value)) << p->name;
    EXPECT_TRUE(aligned(p->grad)) << p->name;
    EXPECT_TRUE(p->value.shares_storage(store.flat_value()));
    EXPECT_TRUE(p->grad.shares_storage(store.flat_grad()));
  }
  EXPECT_EQ(store.find("embedding")->offset, 0);
  EXPECT_EQ(store.find("encoder.bias")->offset, 64);
  EXPECT_EQ(store.find("encoder.weight")->offset, 128);
  EXPECT_EQ(store.flat_size(), 192);
  EXPECT_EQ(store.count(), 35 + 5 + 33);
}

TEST(ParameterStore, TiedWeightsAreOneEntry) {
  const Context ctx = Context::cpu(1);
  ParameterStore store;
  fill(store, ctx, DType::f32, true);
  EXPECT_EQ(store.find("output.weight"), store.find("embedding"));
  EXPECT_EQ(store.find("output.bias"), nullptr);
  ParameterStore other;
  Parameter& p = other.add("a", {1}, Init::zeros());
  EXPECT_THROW(other.add("a", {2}, Init::zeros()), Error);
  EXPECT_THROW(other.alias("a", p), Error);
  other.allocate(ctx, DType::f32, true);
  EXPECT_THROW(other.add("b", {2}, Init::zeros()), Error);
}

TEST(ParameterStore, SingleMasterIsTheWorkingCopy) {
  const Context ctx = Context::cpu(1);
  ParameterStore store;
  fill(store, ctx, DType::f32, true);
  for (Parameter* p : store.all()) EXPECT_EQ(p->master.raw(), p->value.raw());
  const MemoryUse use = ctx.allocator().use();
  EXPECT_EQ(use.live[static_cast<int>(MemoryTag::weights)], 192 * 4);
  EXPECT_EQ(use.live[static_cast<int>(MemoryTag::gradients)], 192 * 4);
  EXPECT_EQ(use.live[static_cast<int>(MemoryTag::optimiser)], 0);
}

TEST(ParameterStore, BrainFloatHasMastersInSingle) {
  const Context ctx = Context::cpu(1);
  ParameterStore store;
  fill(store, ctx, DType::bf16, true);
  Parameter& w = *store.find("encoder.weight");
  EXPECT_EQ(w.value.dtype(), DType::bf16);
  EXPECT_EQ(w.master.dtype(), DType::f32);
  EXPECT_EQ(w.grad.dtype(), DType::f32);
  EXPECT_FALSE(w.value.shares_storage(w.master));
  const std::vector<double> exact = store.read(w), working = ctx.download_real(w.value);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(working[i], static_cast<double>(static_cast<float>(bf16(static_cast<float>(exact[i])))));
  }
  w.master.data<float>()[3] = 0.7f;
  store.refresh_working_copy();
  EXPECT_EQ(w.value.data<bf16>()[3].bits, bf16(0.7f).bits);
}

TEST(ParameterStore, DecodingNeedsTheWorkingCopyOnly) {
  const Context ctx = Context::cpu(1);
  ParameterStore store;
  fill(store, ctx, DType::bf16, false);
  EXPECT_FALSE(store.flat_grad().defined());
  EXPECT_FALSE(store.find("embedding")->grad.defined());
  EXPECT_TRUE(store.flat_master().shares_storage(store.flat_value()));
  EXPECT_EQ(ctx.allocator().use().total_live, 192 * 2 + 128);  // rounded up to 256 bytes
}

TEST(ParameterStore, InitialisationFollowsSeedAndName) {
  const Context ctx = Context::cpu(1);
  ParameterStore a, b, c;
  fill(a, ctx, DType::f64, true);
  fill(b, ctx, DType::f64, true);
  EXPECT_EQ(a.read(*a.find("encoder.weight")), b.read(*b.find("encoder.weight")));
  // Other neighbours, same name: same values.
  c.add("encoder.weight", {5, 7}, Init::uniform(0.5));
  c.allocate(ctx, DType::f64, true);
  c.initialise(4);
  EXPECT_EQ(a.read(*a.find("encoder.weight")), c.read(*c.find("encoder.weight")));
  c.initialise(5);
  EXPECT_NE(a.read(*a.find("encoder.weight")), c.read(*c.find("encoder.weight")));
  for (double v : a.read(*a.find("encoder.weight"))) EXPECT_LE(std::abs(v), 0.5);
  const std::vector<double> embedding = a.read(*a.find("embedding"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(embedding[static_cast<size_t>(3 + i)], 0) << "the padding row";
  EXPECT_NE(embedding[0], 0);
}

TEST(ParameterStore, WriteReadAndZero) {
  const Context ctx = Context::cpu(1);
  ParameterStore store;
  fill(store, ctx, DType::f32, true);
  Parameter& bias = *store.find("encoder.bias");
  store.write(bias, {1, 2, 3, 4, 5});
  EXPECT_EQ(store.read(bias), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_THROW(store.write(bias, {1, 2}), DataError);
  // Padding between entries stays zero: norms and hashes run over it.
  const std::vector<double> flat = ctx.download_real(store.flat_master());
  for (size_t i = 69; i < 128; ++i) EXPECT_EQ(flat[i], 0);
  bias.grad.data<float>()[2] = 3;
  store.zero_grad();
  for (double g : ctx.download_real(store.flat_grad())) EXPECT_EQ(g, 0);
}

}  // namespace
}  // namespace tactus
