// A pool over reserved blocks of one device's memory: best fit, neighbours coalesced on release, live and peak bytes by
// tag.
//
// On CUDA the pool is ordered by one stream: a block released by the host may be handed out again at once, because all
// its users were launched on the same stream before. Growth beyond the reserved blocks asks the device; after warm-up
// none happens.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tactus {

struct MemoryUse {
  std::array<int64_t, kMemoryTags> live{}, peak{};
  int64_t total_live = 0, total_peak = 0;
  int64_t reserved = 0;            ///< bytes taken from the device
  int64_t device_allocations = 0;  ///< how often the device was asked
  std::string to_string() const;
};

class Allocator {
 public:
  /// `limit` bytes at most are taken from the device (0: no limit of ours).
  static std::shared_ptr<Allocator> make(Device device, int device_index, int64_t limit = 0);
  ~Allocator();
  Allocator(const Allocator&) = delete;

  /// 256-byte aligned block; bytes 0 gives a valid unique pointer. Throws OutOfMemory with the live bytes by tag.
  void* allocate(int64_t bytes, MemoryTag tag);
  void release(void* ptr, int64_t bytes, MemoryTag tag) noexcept;
  MemoryUse use() const;
  void reset_peaks();
  /// Text appended to OutOfMemory messages: what was being done (utterances of the batch, setting to change).
  void set_hint(std::string hint);

 private:
  struct Block {
    char* begin;
    int64_t size;
    int segment;
    bool free;
  };
  Allocator(Device device, int device_index, int64_t limit)
      : device_(device), device_index_(device_index), limit_(limit) {}
  void grow(int64_t bytes, MemoryTag tag);
  [[noreturn]] void fail(int64_t bytes, MemoryTag tag);
  void* device_allocate(int64_t bytes);
  void device_free(void* p);
  /// Gives segments without a live block back to the device; false where there are none.
  bool release_unused();

  Device device_;
  int device_index_;
  int64_t limit_;
  mutable std::mutex mutex_;
  std::map<char*, Block> blocks_;
  std::set<std::pair<int64_t, char*>> free_;
  std::vector<char*> segments_;  // null once given back
  std::vector<int64_t> segment_bytes_;
  MemoryUse use_;
  std::string hint_;
};

}  // namespace tactus
