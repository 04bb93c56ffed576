// IEEE 754 half precision as bits: a storage type (features in corpora), converted by hand so that every machine rounds
// alike.
#pragma once

#include <bit>
#include <cstdint>

namespace tactus {

/// Rounds to nearest, ties to even. Beyond 65504 becomes infinity; NaN stays NaN.
inline uint16_t half_from_float(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint32_t sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (u >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (u < 0x38800000u) {
    // Subnormal halves are multiples of 2^-24: adding 0.5 leaves exactly those bits at the bottom of the float's
    // mantissa.
    float shifted = std::bit_cast<float>(u) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  uint32_t rounded = u + 0xfffu + ((u >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

/// Exact.
inline float float_from_half(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return std::bit_cast<float>(sign | magnitude | 0x7f800000u);
  // Multiplying by 2^112 moves the exponent's bias and normalises subnormals in one step.
  float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

/// The same for n numbers. Without a branch, so that compilers use vector instructions.
inline void floats_from_halves(const uint16_t* halves, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t sign = static_cast<uint32_t>(halves[i] & 0x8000u) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(halves[i] & 0x7fffu) << 13;
    const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const uint32_t beyond = magnitude >= 0x0f800000u ? 0xffffffffu : 0u;
    out[i] = std::bit_cast<float>(sign | (finite & ~beyond) | ((magnitude | 0x7f800000u) & beyond));
  }
}

}  // namespace tactus
