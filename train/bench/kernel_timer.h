// Time of kernels on a context's device.
#pragma once

#include <functional>

#include "core/context.h"

namespace tactus {

/// Seconds that the device takes for `launches` calls of `launch`. CUDA: between two events of the context's stream,
/// with the stream held back while the host launches, so that the host's own time does not count. CPU: a steady clock.
double time_launches(const Context& ctx, int64_t launches, const std::function<void()>& launch);

#if defined(TACTUS_WITH_CUDA)
/// The CUDA half of time_launches.
double time_cuda_launches(const Context& ctx, int64_t launches, const std::function<void()>& launch);
#endif

}  // namespace tactus
