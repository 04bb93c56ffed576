#include "core/segments.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(Segments, OffsetsLengthsAndRows) {
  const Context ctx = Context::cpu(1);
  const Segments s(ctx, {3, 0, 5, 1});
  EXPECT_EQ(s.count(), 4);
  EXPECT_EQ(s.rows(), 9);
  EXPECT_EQ(s.longest(), 5);
  EXPECT_EQ(s.begin(2), 3);
  EXPECT_EQ(s.length(1), 0);
  EXPECT_EQ(s.offsets(), (std::vector<int32_t>{0, 3, 3, 8, 9}));
  EXPECT_EQ(s.lengths(), (std::vector<int64_t>{3, 0, 5, 1}));
  EXPECT_EQ(s.utterances(), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(Segments, ViewHoldsTheSameOnTheDevice) {
  const Context ctx = Context::cpu(1);
  const Segments s(ctx, {2, 0, 3}, {70, 80, 90});
  const SegmentsView v = s.view();
  EXPECT_EQ(v.count, 3);
  EXPECT_EQ(v.rows, 5);
  EXPECT_EQ(v.longest, 3);
  EXPECT_EQ(std::vector<int32_t>(v.offsets, v.offsets + 4), s.offsets());
  EXPECT_EQ(std::vector<int32_t>(v.row_segment, v.row_segment + 5), (std::vector<int32_t>{0, 0, 2, 2, 2}));
  EXPECT_EQ(std::vector<int32_t>(v.utterance, v.utterance + 3), (std::vector<int32_t>{70, 80, 90}));
}

TEST(Segments, NothingAndNoSequences) {
  const Context ctx = Context::cpu(1);
  EXPECT_EQ(Segments().count(), 0);
  EXPECT_EQ(Segments().rows(), 0);
  EXPECT_EQ(Segments().view().offsets, nullptr);
  const Segments none(ctx, {}), empty(ctx, {0, 0});
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.view().offsets[0], 0);
  EXPECT_EQ(empty.count(), 2);
  EXPECT_EQ(empty.rows(), 0);
  EXPECT_EQ(empty.longest(), 0);
}

TEST(Segments, RejectsWhatItCannotHold) {
  const Context ctx = Context::cpu(1);
  EXPECT_THROW(Segments(ctx, {1, -1}), ShapeError);
  EXPECT_THROW(Segments(ctx, {1, 2}, {5}), ShapeError);
  EXPECT_THROW(Segments(ctx, {int64_t{1} << 30, int64_t{1} << 30}), ShapeError);
}

}  // namespace
}  // namespace tactus
