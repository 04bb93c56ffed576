#include "core/allocator.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#if defined(TACTUS_WITH_CUDA)
#include <cuda_runtime.h>
#endif

namespace tactus {
namespace {

constexpr int64_t kAlignment = 256;
// Blocks are reserved in large pieces, so that the many small tensors of a step share few of them.
constexpr int64_t kSegmentBytes = int64_t{32} << 20;

int64_t rounded(int64_t bytes) { return std::max<int64_t>((bytes + kAlignment - 1) / kAlignment, 1) * kAlignment; }

std::string mebibytes(int64_t bytes) {
  std::ostringstream s;
  s.precision(1);
  s << std::fixed << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return s.str();
}

}  // namespace

std::string MemoryUse::to_string() const {
  std::string s;
  for (int i = 0; i < kMemoryTags; ++i) {
    if (peak[i] == 0) continue;
    s += (s.empty() ? "" : ", ") + tactus::to_string(static_cast<MemoryTag>(i)) + " " + mebibytes(live[i]);
  }
  return s.empty() ? "nothing" : s;
}

std::shared_ptr<Allocator> Allocator::make(Device device, int device_index, int64_t limit) {
  return std::shared_ptr<Allocator>(new Allocator(device, device_index, limit));
}

Allocator::~Allocator() {
  for (char* segment : segments_) device_free(segment);
}

void Allocator::device_free(void* p) {
#if defined(TACTUS_WITH_CUDA)
  if (device_ == Device::cuda) {
    cudaFree(p);  // waits for kernels that still use it
    return;
  }
#endif
  std::free(p);
}

bool Allocator::release_unused() {
  bool any = false;
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const Block block = it->second;
    const auto segment = static_cast<size_t>(block.segment);
    if (!block.free || block.begin != segments_[segment] || block.size != segment_bytes_[segment]) {
      ++it;
      continue;
    }
    free_.erase({block.size, block.begin});
    it = blocks_.erase(it);
    device_free(block.begin);
    segments_[segment] = nullptr;
    use_.reserved -= block.size;
    any = true;
  }
  return any;
}

void* Allocator::device_allocate(int64_t bytes) {
  if (limit_ > 0 && use_.reserved + bytes > limit_) return nullptr;
#if defined(TACTUS_WITH_CUDA)
  if (device_ == Device::cuda) {
    void* p = nullptr;
    if (cudaSetDevice(device_index_) != cudaSuccess || cudaMalloc(&p, static_cast<size_t>(bytes)) != cudaSuccess) {
      cudaGetLastError();  // an exhausted device is reported by fail(), not by the next launch check
      return nullptr;
    }
    return p;
  }
#endif
  return std::aligned_alloc(kAlignment, static_cast<size_t>(bytes));
}

void Allocator::fail(int64_t bytes, MemoryTag tag) {
  std::string message = "out of memory on " + tactus::to_string(device_) + ": asked for " + mebibytes(bytes) + " of " +
                        tactus::to_string(tag) + "; live: " + use_.to_string() + "; reserved " +
                        mebibytes(use_.reserved);
  if (limit_ > 0) message += " of at most " + mebibytes(limit_);
  if (!hint_.empty()) message += "; " + hint_;
  throw OutOfMemory(message);
}

void Allocator::grow(int64_t bytes, MemoryTag tag) {
  int64_t size = std::max(bytes, kSegmentBytes);
  void* p = device_allocate(size);
  if (!p && size > bytes) p = device_allocate(size = bytes);
  // Batches of other shapes may have left segments that are too small: worth a wait, and nothing happens where memory
  // suffices.
  if (!p && release_unused()) p = device_allocate(size = bytes);
  if (!p) fail(bytes, tag);
  char* begin = static_cast<char*>(p);
  blocks_[begin] = {begin, size, static_cast<int>(segments_.size()), true};
  free_.insert({size, begin});
  segments_.push_back(begin);
  segment_bytes_.push_back(size);
  use_.reserved += size;
  ++use_.device_allocations;
}

void* Allocator::allocate(int64_t bytes, MemoryTag tag) {
  if (bytes < 0) throw ShapeError("allocation of a negative number of bytes");
  const int64_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  auto it = free_.lower_bound({size, nullptr});
  if (it == free_.end()) {
    grow(size, tag);
    it = free_.lower_bound({size, nullptr});
  }
  char* begin = it->second;
  free_.erase(it);
  Block& block = blocks_[begin];
  if (block.size > size) {
    char* rest = begin + size;
    blocks_[rest] = {rest, block.size - size, block.segment, true};
    free_.insert({block.size - size, rest});
    block.size = size;
  }
  block.free = false;
  const int i = static_cast<int>(tag);
  use_.live[i] += size;
  use_.total_live += size;
  use_.peak[i] = std::max(use_.peak[i], use_.live[i]);
  use_.total_peak = std::max(use_.total_peak, use_.total_live);
  return begin;
}

void Allocator::release(void* ptr, int64_t, MemoryTag tag) noexcept {
  std::lock_guard lock(mutex_);
  auto it = blocks_.find(static_cast<char*>(ptr));
  use_.live[static_cast<int>(tag)] -= it->second.size;
  use_.total_live -= it->second.size;
  it->second.free = true;
  auto merge_into = [&](std::map<char*, Block>::iterator left, std::map<char*, Block>::iterator right) {
    left->second.size += right->second.size;
    blocks_.erase(right);
  };
  auto next = std::next(it);
  if (next != blocks_.end() && next->second.free && next->second.segment == it->second.segment) {
    free_.erase({next->second.size, next->first});
    merge_into(it, next);
  }
  if (it != blocks_.begin()) {
    auto previous = std::prev(it);
    if (previous->second.free && previous->second.segment == it->second.segment) {
      free_.erase({previous->second.size, previous->first});
      merge_into(previous, it);
      it = previous;
    }
  }
  free_.insert({it->second.size, it->first});
}

MemoryUse Allocator::use() const {
  std::lock_guard lock(mutex_);
  return use_;
}

void Allocator::reset_peaks() {
  std::lock_guard lock(mutex_);
  use_.peak = use_.live;
  use_.total_peak = use_.total_live;
}

void Allocator::set_hint(std::string hint) {
  std::lock_guard lock(mutex_);
  hint_ = std::move(hint);
}

}  // namespace tactus
