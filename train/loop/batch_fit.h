// How large batches may be: measured, because what a batch needs depends on the model, the data and the device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/context.h"
#include "train/loop/options.h"

namespace tactus {

/// The largest limit for which `trial` finds room, to within about 5 %, less a margin of 10 % where memory is what
/// bounds it. trial(limit) gives the bytes that were needed, or nothing when there was no room; it is called for few
/// limits, from small ones to large ones as far as it goes. `budget`: bytes there are, 0 where that is not known. None
/// when not even `smallest` fits.
std::optional<int64_t> fit_limit(const std::function<std::optional<int64_t>(int64_t)>& trial, int64_t smallest,
                                 int64_t largest, int64_t budget);

/// Bytes of memory that the process may still take on the host.
int64_t available_host_bytes();

/// `options` with data.batches.batch: auto replaced by a number for max_frames (text: max_tokens): forward and backward
/// of the largest batch of a plan with that limit fit into the memory of the device (on the CPU 90 % of what is
/// available). What was chosen is noted. Others are returned as they are. OutOfMemory when not even the longest item
/// alone fits.
RunOptions fit_batches(const RunOptions& options);

}  // namespace tactus
