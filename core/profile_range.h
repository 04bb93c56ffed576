// Named ranges on the time line of NVIDIA's profilers (NVTX). Without a profiler, or without CUDA, they cost next to
// nothing.
#pragma once

#if defined(TACTUS_WITH_CUDA)
#include <nvtx3/nvToolsExt.h>
#endif

namespace tactus {

/// A range that lasts as long as the object does. `name` need not outlive the constructor.
class ProfileRange {
 public:
#if defined(TACTUS_WITH_CUDA)
  explicit ProfileRange(const char* name) { nvtxRangePushA(name); }
  ~ProfileRange() { nvtxRangePop(); }
#else
  explicit ProfileRange(const char*) {}
  ~ProfileRange() {}
#endif
  ProfileRange(const ProfileRange&) = delete;
};

}  // namespace tactus
