#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/context.h"

namespace tactus {
namespace {

Tensor counted(const Context& ctx, Shape shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0.0f);
  return ctx.upload(values.data(), shape);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "";
}

TEST(Shape, ExtentsAndText) {
  const Shape s{3, 80};
  EXPECT_EQ(s.rank(), 2);
  EXPECT_EQ(s.elements(), 240);
  EXPECT_EQ(s.to_string(), "[3, 80]");
  EXPECT_TRUE(s == (Shape{3, 80}));
  EXPECT_FALSE(s == (Shape{80, 3}));
  EXPECT_FALSE((Shape{3}) == (Shape{3, 1}));
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{4, 0, 2}).elements(), 0);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5}), ShapeError);
  EXPECT_THROW((Shape{2, -1}), ShapeError);
}

TEST(Tensor, RowsAndColumnsOfEveryRank) {
  const Context ctx = Context::cpu(1);
  const Tensor scalar = ctx.zeros({}, DType::f32), vector = ctx.zeros({5}, DType::f32),
               cube = ctx.zeros({2, 3, 4}, DType::f64);
  EXPECT_EQ(scalar.rows(), 1);
  EXPECT_EQ(scalar.cols(), 1);
  EXPECT_EQ(vector.rows(), 1);
  EXPECT_EQ(vector.cols(), 5);
  EXPECT_EQ(cube.rows(), 6);
  EXPECT_EQ(cube.cols(), 4);
  EXPECT_EQ(cube.bytes(), 24 * 8);
  EXPECT_FALSE(Tensor{}.defined());
  EXPECT_TRUE(ctx.empty({0, 7}, DType::f32).defined());
}

TEST(Tensor, ViewAndSliceShareStorage) {
  const Context ctx = Context::cpu(1);
  const Tensor t = counted(ctx, {4, 6});
  const Tensor view = t.view({8, 3}), part = t.slice(1, 3);
  EXPECT_TRUE(view.shares_storage(t));
  EXPECT_TRUE(part.shares_storage(t));
  EXPECT_FALSE(counted(ctx, {1}).shares_storage(t));
  EXPECT_TRUE(part.shape() == (Shape{2, 6}));
  EXPECT_EQ(part.data<float>()[0], 6);
  EXPECT_EQ(part.slice(1, 2).data<float>()[5], 17);
  view.data<float>()[23] = -1;
  EXPECT_EQ(t.mat<float>()(3, 5), -1);
  EXPECT_TRUE(t.slice(2, 2).shape() == (Shape{0, 6}));
  EXPECT_TRUE(counted(ctx, {3, 2, 2, 2}).slice(1, 2).shape() == (Shape{1, 2, 2, 2}));
  EXPECT_EQ(counted(ctx, {3, 2, 2}).slice(2, 3).data<float>()[0], 8);
}

TEST(Tensor, MatWindows) {
  const Context ctx = Context::cpu(1);
  const Tensor t = counted(ctx, {4, 6});
  const Mat<float> window = t.mat<float>().columns(2, 5).slice(1, 3);
  EXPECT_EQ(window.rows, 2);
  EXPECT_EQ(window.cols, 3);
  EXPECT_EQ(window.ld, 6);
  EXPECT_EQ(window(0, 0), 8);
  EXPECT_EQ(window(1, 2), 16);
  const Mat<const float> same = window;
  EXPECT_EQ(same.row(1), window.row(1));
}

TEST(Tensor, MistakesNameWhatWasWrong) {
  const Context ctx = Context::cpu(1);
  const Tensor t = counted(ctx, {4, 6});
  EXPECT_EQ(message_of([&] { t.view({5, 5}); }), "view: [4, 6] cannot be seen as [5, 5]");
  EXPECT_EQ(message_of([&] { t.slice(3, 5); }), "slice: [3, 5) of [4, 6]");
  EXPECT_THROW(t.slice(2, 1), ShapeError);
  EXPECT_NE(message_of([&] { t.data<double>(); }).find("holds f32, asked for f64"), std::string::npos);
  EXPECT_THROW(Tensor{}.data<float>(), ShapeError);
}

TEST(Tensor, StorageLivesAsLongAsItsViews) {
  const Context ctx = Context::cpu(1);
  Tensor view;
  {
    const Tensor t = counted(ctx, {100, 10});
    view = t.slice(99, 100);
  }
  EXPECT_GT(ctx.allocator().use().total_live, 0);
  EXPECT_EQ(view.data<float>()[9], 999);
  view = {};
  EXPECT_EQ(ctx.allocator().use().total_live, 0);
}

TEST(Context, UploadAndDownloadRoundToTheType) {
  const Context ctx = Context::cpu(1);
  const std::vector<double> values{1, -2.5, 1.0 / 3, 1e-3};
  EXPECT_EQ(ctx.download_real(ctx.upload_real(values, {4}, DType::f64)), values);
  EXPECT_EQ(ctx.download_real(ctx.upload_real(values, {2, 2}, DType::f32))[2], static_cast<double>(1.0f / 3));
  EXPECT_EQ(ctx.download_real(ctx.upload_real(values, {4}, DType::bf16))[2], 0.333984375);
  EXPECT_THROW(ctx.upload_real(values, {5}, DType::f32), ShapeError);
  EXPECT_THROW(ctx.upload_real(values, {4}, DType::i32), ShapeError);
}

TEST(Context, DispatchPicksTheTypeOrExplains) {
  const Context ctx = Context::cpu(1);
  EXPECT_EQ(dispatch(ctx, DType::f64, []<class D, class T>() { return sizeof(T); }), 8u);
  EXPECT_EQ(dispatch(ctx, DType::f32, []<class D, class T>() { return sizeof(T); }), 4u);
  EXPECT_THROW(dispatch(ctx, DType::bf16, []<class D, class T>() { return sizeof(T); }), ConfigError);
}

TEST(BrainFloat, RoundsToNearestEven) {
  EXPECT_EQ(bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bf16(1.00390625f).bits, 0x3f80);  // halfway to the next: to the even one below
  EXPECT_EQ(bf16(1.01171875f).bits, 0x3f82);  // halfway: to the even one above
  EXPECT_EQ(bf16(1.004f).bits, 0x3f81);
  EXPECT_EQ(bf16(-2.5f).bits, 0xc020);
  EXPECT_TRUE(std::isinf(static_cast<float>(bf16(std::numeric_limits<float>::max()))));
  EXPECT_TRUE(std::isinf(static_cast<float>(bf16(-std::numeric_limits<float>::infinity()))));
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::numeric_limits<float>::quiet_NaN()))));
  const uint32_t quiet_payload = 0x7fffffffu;  // rounding up would carry into the sign
  float nan;
  std::memcpy(&nan, &quiet_payload, 4);
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(nan))));
}

}  // namespace
}  // namespace tactus
