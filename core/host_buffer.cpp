#include "core/host_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/context.h"
#if defined(TACTUS_WITH_CUDA)
#include "core/cuda.h"
#endif

namespace tactus {
namespace {

constexpr int64_t kAlignment = 256;
// Batches differ a little in size; coarse steps let one block serve them all.
constexpr int64_t kStep = int64_t{64} << 10;

int64_t rounded(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

HostBuffer::HostBuffer(int64_t bytes) : bytes_(bytes) {
  if (bytes > 0) block_ = HostPool::allocate(rounded(bytes, kAlignment), -1);
}

HostBuffer::~HostBuffer() {
  if (block_.begin == nullptr) return;
  if (pool_) {
    pool_->give_back(block_);
  } else {
    HostPool::release(block_);
  }
}

HostBuffer::Block HostPool::allocate(int64_t bytes, [[maybe_unused]] int device) {
#if defined(TACTUS_WITH_CUDA)
  if (device >= 0) {
    void* p = nullptr;
    if (cudaSetDevice(device) == cudaSuccess &&
        cudaHostAlloc(&p, static_cast<size_t>(bytes), cudaHostAllocPortable) == cudaSuccess) {
      return {p, bytes, true};
    }
    cudaGetLastError();  // ordinary memory serves as well, only slower: the failure must not surface at the next launch
  }
#endif
  void* p = std::aligned_alloc(kAlignment, static_cast<size_t>(bytes));
  if (p == nullptr) {
    throw OutOfMemory("out of memory on the host: a batch needs " + std::to_string((bytes >> 20) + 1) +
                      " MiB; lower data.batches.max_frames");
  }
  return {p, bytes, false};
}

void HostPool::release(HostBuffer::Block block) noexcept {
#if defined(TACTUS_WITH_CUDA)
  if (block.pinned) {
    cudaFreeHost(block.begin);
    return;
  }
#endif
  std::free(block.begin);
}

std::shared_ptr<HostPool> HostPool::make(const Context& ctx, int64_t block_bytes) {
  int device = -1;
#if defined(TACTUS_WITH_CUDA)
  if (ctx.device() == Device::cuda) device = ctx.cuda_handles()->device;
#else
  static_cast<void>(ctx);
#endif
  return std::shared_ptr<HostPool>(new HostPool(device, block_bytes));
}

std::shared_ptr<HostPool> HostPool::make(int64_t block_bytes) {
  return std::shared_ptr<HostPool>(new HostPool(-1, block_bytes));
}

HostPool::~HostPool() {
  for (HostBuffer::Block& block : free_) release(block);
}

HostBuffer HostPool::acquire(int64_t bytes) {
  HostBuffer buffer;
  if (bytes <= 0) return buffer;
  const int64_t wanted = rounded(std::max(bytes, block_bytes_), kStep);
  HostBuffer::Block outgrown;
  {
    std::lock_guard lock(mutex_);
    auto best = free_.end(), largest = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->capacity >= bytes && (best == free_.end() || it->capacity < best->capacity)) best = it;
      if (largest == free_.end() || it->capacity > largest->capacity) largest = it;
    }
    const auto taken = best != free_.end() ? best : largest;
    if (best != free_.end()) {
      buffer.block_ = *taken;
    } else {
      if (taken != free_.end()) outgrown = *taken;
      use_.blocks += outgrown.begin ? 0 : 1;
      use_.bytes += wanted - outgrown.capacity;
      ++use_.allocations;
    }
    if (taken != free_.end()) {
      *taken = free_.back();
      free_.pop_back();
    }
    free_.reserve(static_cast<size_t>(use_.blocks));  // so that giving back needs no memory
  }
  if (buffer.block_.begin == nullptr) {
    if (outgrown.begin) release(outgrown);
    try {
      buffer.block_ = allocate(wanted, device_);
    } catch (...) {
      std::lock_guard lock(mutex_);
      --use_.blocks;
      use_.bytes -= wanted;
      throw;
    }
  }
  buffer.bytes_ = bytes;
  buffer.pool_ = shared_from_this();
  return buffer;
}

void HostPool::give_back(HostBuffer::Block block) noexcept {
  std::lock_guard lock(mutex_);
  free_.push_back(block);
}

HostPool::Use HostPool::use() const {
  std::lock_guard lock(mutex_);
  return use_;
}

}  // namespace tactus
