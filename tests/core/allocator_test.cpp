#include "core/allocator.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/rng.h"

namespace tactus {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// An allocator with one reserved segment that is `blocks` MiB exactly.
std::shared_ptr<Allocator> reserved(int64_t blocks) {
  auto pool = Allocator::make(Device::cpu, 0);
  void* p = pool->allocate(blocks * kMiB, MemoryTag::workspace);
  pool->release(p, blocks * kMiB, MemoryTag::workspace);
  return pool;
}

int64_t index_of(MemoryTag tag) { return static_cast<int64_t>(tag); }

TEST(Allocator, BlocksAreAlignedAndApart) {
  auto pool = Allocator::make(Device::cpu, 0);
  char* a = static_cast<char*>(pool->allocate(1, MemoryTag::weights));
  char* b = static_cast<char*>(pool->allocate(0, MemoryTag::weights));
  char* c = static_cast<char*>(pool->allocate(257, MemoryTag::weights));
  for (char* p : {a, b, c}) EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0u);
  EXPECT_NE(a, b);
  EXPECT_NE(b, c);
  EXPECT_EQ(pool->use().total_live, 256 + 256 + 512);
  pool->release(a, 1, MemoryTag::weights);
  pool->release(b, 0, MemoryTag::weights);
  pool->release(c, 257, MemoryTag::weights);
  EXPECT_EQ(pool->use().total_live, 0);
  EXPECT_THROW(pool->allocate(-1, MemoryTag::weights), ShapeError);
}

TEST(Allocator, NeighboursCoalesceInEveryOrder) {
  const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}};
  for (const auto& order : orders) {
    auto pool = reserved(64);
    void* blocks[4];
    for (void*& p : blocks) p = pool->allocate(16 * kMiB, MemoryTag::activations);
    for (int i : order) pool->release(blocks[i], 16 * kMiB, MemoryTag::activations);
    void* whole = pool->allocate(64 * kMiB, MemoryTag::activations);
    EXPECT_EQ(pool->use().device_allocations, 1);
    EXPECT_EQ(pool->use().reserved, 64 * kMiB);
    pool->release(whole, 64 * kMiB, MemoryTag::activations);
  }
}

TEST(Allocator, BlocksOfDifferentSegmentsDoNotCoalesce) {
  auto pool = Allocator::make(Device::cpu, 0);
  void* a = pool->allocate(32 * kMiB, MemoryTag::cache);
  void* b = pool->allocate(32 * kMiB, MemoryTag::cache);
  pool->release(a, 32 * kMiB, MemoryTag::cache);
  pool->release(b, 32 * kMiB, MemoryTag::cache);
  EXPECT_EQ(pool->use().device_allocations, 2);
  void* both =
      pool->allocate(64 * kMiB, MemoryTag::cache);  // the two may lie end to end, yet are two pieces of the device
  EXPECT_EQ(pool->use().device_allocations, 3);
  pool->release(both, 64 * kMiB, MemoryTag::cache);
}

TEST(Allocator, BestFitTakesTheSmallestHole) {
  auto pool = reserved(64);
  void* large_hole = pool->allocate(20 * kMiB, MemoryTag::activations);
  void* wall = pool->allocate(kMiB, MemoryTag::activations);
  void* small_hole = pool->allocate(4 * kMiB, MemoryTag::activations);
  void* end = pool->allocate(kMiB, MemoryTag::activations);
  pool->release(large_hole, 20 * kMiB, MemoryTag::activations);
  pool->release(small_hole, 4 * kMiB, MemoryTag::activations);
  EXPECT_EQ(pool->allocate(3 * kMiB, MemoryTag::activations), small_hole);
  EXPECT_EQ(pool->allocate(5 * kMiB, MemoryTag::activations), large_hole);
  pool->release(wall, kMiB, MemoryTag::activations);
  pool->release(end, kMiB, MemoryTag::activations);
}

TEST(Allocator, LiveAndPeakBytesByTag) {
  auto pool = Allocator::make(Device::cpu, 0);
  void* weights = pool->allocate(1000, MemoryTag::weights);
  void* first = pool->allocate(4096, MemoryTag::activations);
  pool->release(first, 4096, MemoryTag::activations);
  void* second = pool->allocate(512, MemoryTag::activations);
  MemoryUse use = pool->use();
  EXPECT_EQ(use.live[index_of(MemoryTag::weights)], 1024);
  EXPECT_EQ(use.live[index_of(MemoryTag::activations)], 512);
  EXPECT_EQ(use.peak[index_of(MemoryTag::activations)], 4096);
  EXPECT_EQ(use.total_live, 1536);
  EXPECT_EQ(use.total_peak, 5120);
  pool->reset_peaks();
  use = pool->use();
  EXPECT_EQ(use.peak[index_of(MemoryTag::activations)], 512);
  EXPECT_EQ(use.total_peak, 1536);
  pool->release(second, 512, MemoryTag::activations);
  pool->release(weights, 1000, MemoryTag::weights);
}

TEST(Allocator, LimitGivesOutOfMemoryWithTheWholeStory) {
  auto pool = Allocator::make(Device::cpu, 0, 40 * kMiB);
  void* weights = pool->allocate(24 * kMiB, MemoryTag::weights);
  pool->set_hint("batch of utterances a, b; lower batch.tokens");
  try {
    pool->allocate(17 * kMiB, MemoryTag::activations);
    FAIL() << "17 MiB beyond the limit were given";
  } catch (const OutOfMemory& e) {
    const std::string text = e.what();
    for (const char* part : {"asked for 17.0 MiB of activations", "weights 24.0 MiB", "at most 40.0 MiB",
                             "batch of utterances a, b; lower batch.tokens"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in: " << text;
    }
  }
  void* rest = pool->allocate(8 * kMiB, MemoryTag::activations);  // the failure left the pool usable
  pool->release(rest, 8 * kMiB, MemoryTag::activations);
  pool->release(weights, 24 * kMiB, MemoryTag::weights);
}

/// Segments that nothing lives in make room for a request that fits none of them.
TEST(Allocator, UnusedSegmentsAreGivenBackBeforeFailing) {
  auto pool = Allocator::make(Device::cpu, 0, 100 * kMiB);
  void* kept = pool->allocate(33 * kMiB, MemoryTag::weights);
  void* small = pool->allocate(34 * kMiB, MemoryTag::activations);
  pool->release(small, 34 * kMiB, MemoryTag::activations);
  EXPECT_EQ(pool->use().reserved, 67 * kMiB);
  std::memset(kept, 7, 33 * kMiB);
  char* large = static_cast<char*>(pool->allocate(60 * kMiB, MemoryTag::activations));
  std::memset(large, 1, 60 * kMiB);
  EXPECT_EQ(static_cast<char*>(kept)[33 * kMiB - 1], 7);
  EXPECT_EQ(pool->use().reserved, 93 * kMiB);
  EXPECT_THROW(pool->allocate(34 * kMiB, MemoryTag::activations), OutOfMemory);
  pool->release(large, 60 * kMiB, MemoryTag::activations);
  void* again = pool->allocate(34 * kMiB, MemoryTag::activations);
  EXPECT_EQ(pool->use().reserved, 93 * kMiB) << "the large segment serves";
  pool->release(again, 34 * kMiB, MemoryTag::activations);
  pool->release(kept, 33 * kMiB, MemoryTag::weights);
}

TEST(Allocator, RandomStepsKeepTheReservedMemoryFlat) {
  auto pool = Allocator::make(Device::cpu, 0);
  struct Live {
    char* begin;
    int64_t bytes;
    char mark;
  };
  std::vector<Live> live;
  Rng rng(1);
  int64_t warm = 0, sum = 0;
  for (int step = 0; step < 2000; ++step) {
    // A step: up to 24 tensors of 1 byte to 2 MiB, freed in random order, some within the step.
    const int64_t tensors = 1 + static_cast<int64_t>(rng.below(24));
    for (int64_t i = 0; i < tensors; ++i) {
      const int64_t bytes = 1 + static_cast<int64_t>(rng.below(uint64_t{1} << rng.below(22)));
      Live block{static_cast<char*>(pool->allocate(bytes, MemoryTag::activations)), bytes,
                 static_cast<char>(rng.below(100))};
      block.begin[0] = block.begin[bytes - 1] = block.mark;
      live.push_back(block);
      sum += bytes;
      while (!live.empty() && (i + 1 == tensors || rng.below(3) == 0)) {
        std::swap(live[rng.below(live.size())], live.back());
        ASSERT_EQ(live.back().begin[0], live.back().mark);
        ASSERT_EQ(live.back().begin[live.back().bytes - 1], live.back().mark);
        pool->release(live.back().begin, live.back().bytes, MemoryTag::activations);
        live.pop_back();
      }
    }
    if (step == 100) warm = pool->use().reserved;
  }
  EXPECT_GT(sum, 10 * pool->use().reserved);
  EXPECT_EQ(pool->use().reserved, warm);
  EXPECT_EQ(pool->use().total_live, 0);
}

}  // namespace
}  // namespace tactus
