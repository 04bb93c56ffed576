// Host memory that batches are built in: blocks that are used again and again, page-locked where a GPU reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tactus {

class Context;
class HostPool;

/// An owned block of host memory, aligned to 256 bytes, contents undefined. Goes back to its pool when destroyed; may
/// outlive every other owner of the pool.
class HostBuffer {
 public:
  HostBuffer() = default;
  /// Memory of its own, without a pool. OutOfMemory when there is none.
  explicit HostBuffer(int64_t bytes);
  HostBuffer(HostBuffer&& o) noexcept { swap(o); }
  HostBuffer& operator=(HostBuffer&& o) noexcept {
    HostBuffer(std::move(o)).swap(*this);
    return *this;
  }
  ~HostBuffer();

  int64_t bytes() const { return bytes_; }
  /// Page-locked: a GPU can copy from it while the CPU goes on.
  bool pinned() const { return block_.pinned; }
  template <class T>
  T* as() {
    return static_cast<T*>(block_.begin);
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(block_.begin);
  }

 private:
  friend class HostPool;
  struct Block {
    void* begin = nullptr;
    int64_t capacity = 0;
    bool pinned = false;
  };
  void swap(HostBuffer& o) noexcept {
    std::swap(block_, o.block_), std::swap(bytes_, o.bytes_), std::swap(pool_, o.pool_);
  }
  Block block_;
  int64_t bytes_ = 0;
  std::shared_ptr<HostPool> pool_;
};

/// Lends blocks and keeps those that come back. One that is too small for a request gives way to a larger one, so that
/// there are never more blocks than were lent at one time. Every method may be called from any thread.
class HostPool : public std::enable_shared_from_this<HostPool> {
 public:
  struct Use {
    int64_t blocks = 0, bytes = 0;  ///< owned, lent or not
    int64_t allocations = 0;        ///< how often the system was asked
  };
  /// Page-locked memory for a CUDA context where the system grants it, ordinary memory otherwise. No block is smaller
  /// than `block_bytes`: with the size of the largest request, blocks never give way.
  static std::shared_ptr<HostPool> make(const Context& ctx, int64_t block_bytes = 0);
  /// Ordinary memory.
  static std::shared_ptr<HostPool> make(int64_t block_bytes = 0);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// OutOfMemory when there is none. No bytes: an empty buffer.
  HostBuffer acquire(int64_t bytes);
  Use use() const;

 private:
  friend class HostBuffer;
  HostPool(int device, int64_t block_bytes) : device_(device), block_bytes_(block_bytes) {}
  void give_back(HostBuffer::Block block) noexcept;
  static HostBuffer::Block allocate(int64_t bytes, int device);
  static void release(HostBuffer::Block block) noexcept;

  const int device_;  // of CUDA; -1: ordinary memory
  const int64_t block_bytes_;
  mutable std::mutex mutex_;
  std::vector<HostBuffer::Block> free_;
  Use use_;
};

}  // namespace tactus
