#include "train/bench/kernel_timer.h"

#include <chrono>

namespace tactus {

double time_launches(const Context& ctx, int64_t launches, const std::function<void()>& launch) {
#if defined(TACTUS_WITH_CUDA)
  if (ctx.device() == Device::cuda) return time_cuda_launches(ctx, launches, launch);
#endif
  ctx.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < launches; ++i) launch();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace tactus
