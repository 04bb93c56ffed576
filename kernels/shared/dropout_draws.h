// The 16-bit draws behind keep_bits (core/rng.h), many groups at a time.
#pragma once

#include <bit>
#include <type_traits>

#include "core/rng.h"

namespace tactus {

/// draws[(i * groups + g) * 8 + j] for rows row .. row + rows - 1 and column groups group .. group + groups - 1:
/// decision j of the group is "keep" where the draw is >= key.threshold().
void dropout_draws(const DropoutKey& key, uint32_t utterance, uint32_t row, int64_t rows, uint32_t head, uint32_t group,
                   int64_t groups, uint16_t* draws);

/// kept ? value : 0 by masking bits: loops over 16-bit draws and wider values become vector code, and a dropped NaN is
/// 0.
template <class T>
T keep_if(bool kept, T value) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return std::bit_cast<T>(std::bit_cast<Bits>(value) & (Bits{0} - Bits{kept}));
}

}  // namespace tactus
