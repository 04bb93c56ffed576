#include "core/host_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "core/context.h"

namespace tactus {
namespace {

TEST(HostPool, BlocksComeBackAndAreUsedAgain) {
  const auto pool = HostPool::make();
  void* first = nullptr;
  {
    HostBuffer a = pool->acquire(1000);
    first = a.as<void>();
    std::memset(a.as<char>(), 1, 1000);
    EXPECT_EQ(a.bytes(), 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 256, 0u);
    EXPECT_FALSE(a.pinned());
    const HostBuffer b = pool->acquire(1000);
    EXPECT_NE(b.as<void>(), first);
  }
  EXPECT_EQ(pool->use().blocks, 2);
  const HostBuffer c = pool->acquire(500), d = pool->acquire(600);
  EXPECT_EQ(pool->use().allocations, 2);
  EXPECT_TRUE(c.as<void>() == first || d.as<void>() == first);
  EXPECT_EQ(pool->acquire(0).as<void>(), nullptr);
}

TEST(HostPool, SmallBlocksGiveWayToLargerOnes) {
  const auto pool = HostPool::make();
  for (int64_t k = 1; k <= 20; ++k) {
    HostBuffer b = pool->acquire(k << 20);
    b.as<char>()[b.bytes() - 1] = 1;
  }
  EXPECT_EQ(pool->use().blocks, 1);
  EXPECT_EQ(pool->use().bytes, 20 << 20);
  for (int64_t k = 1; k <= 20; ++k) pool->acquire(k << 20);
  EXPECT_EQ(pool->use().allocations, 20);
  // Where the largest request is known, there is one allocation for each block that is lent at a time.
  const auto sized = HostPool::make(int64_t{20} << 20);
  for (int64_t k = 1; k <= 20; ++k) sized->acquire(k << 20);
  EXPECT_EQ(sized->use().allocations, 1);
}

TEST(HostPool, BuffersMoveAndOutliveTheirPool) {
  HostBuffer kept;
  {
    const auto pool = HostPool::make(Context::cpu(1));
    kept = pool->acquire(64);
    HostBuffer other = std::move(kept);
    EXPECT_EQ(kept.as<void>(), nullptr);
    kept = std::move(other);
    kept = pool->acquire(64);
    EXPECT_EQ(pool->use().blocks, 2);
  }
  kept.as<char>()[63] = 1;
  HostBuffer alone(100);
  EXPECT_EQ(alone.bytes(), 100);
}

TEST(HostPool, ServesManyThreads) {
  const auto pool = HostPool::make(1 << 16);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        HostBuffer b = pool->acquire(1000 + i);
        std::memset(b.as<char>(), t, 1000);
        std::this_thread::yield();
        for (int k = 0; k < 1000; ++k) ASSERT_EQ(b.as<char>()[k], t);
      }
    });
  }
  threads.clear();
  EXPECT_LE(pool->use().blocks, 4);
  EXPECT_LE(pool->use().allocations, 4);
}

TEST(HostPool, NoMemoryIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers abort where the system returns null";
#endif
  const auto pool = HostPool::make();
  EXPECT_THROW(pool->acquire(int64_t{1} << 60), OutOfMemory);
  EXPECT_EQ(pool->use().blocks, 0);
  EXPECT_THROW(HostBuffer(int64_t{1} << 60), OutOfMemory);
}

TEST(CudaHostPool, MemoryIsPageLocked) {
  if (!Context::cuda_available()) GTEST_SKIP() << "no CUDA device";
  const auto pool = HostPool::make(Context::cuda());
  EXPECT_TRUE(pool->acquire(1 << 20).pinned());
}

}  // namespace
}  // namespace tactus
