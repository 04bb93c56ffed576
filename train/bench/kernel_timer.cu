#include <algorithm>

#include "core/cuda.h"
#include "train/bench/kernel_timer.h"

namespace tactus {
namespace {

constexpr uint64_t kHoldPerLaunch = 20000, kLongestHold = 20000000;  // nanoseconds

__device__ uint64_t now() {
  uint64_t nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__global__ void hold(uint64_t nanoseconds) {
  const uint64_t begin = now();
  while (now() - begin < nanoseconds) __nanosleep(500);
}

class Event {
 public:
  Event() { cuda_check(cudaEventCreate(&event_), "event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { cuda_check(cudaEventRecord(event_, stream), "event"); }
  void wait() { cuda_check(cudaEventSynchronize(event_), "event"); }
  double seconds_since(const Event& begin) const {
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "event");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double time_cuda_launches(const Context& ctx, int64_t launches, const std::function<void()>& launch) {
  const cudaStream_t stream = stream_of(ctx);
  Event begin, end;
  hold<<<1, 1, 0, stream>>>(std::min(kLongestHold, kHoldPerLaunch * static_cast<uint64_t>(launches)));
  cuda_check_launch("hold");
  begin.record(stream);
  for (int64_t i = 0; i < launches; ++i) launch();
  end.record(stream);
  end.wait();
  return end.seconds_since(begin);
}

}  // namespace tactus
