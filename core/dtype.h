// Element types and the 16-bit types of storage.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "core/error.h"

#if defined(__CUDACC__)
#define TACTUS_HD __host__ __device__
#else
#define TACTUS_HD
#endif

namespace tactus {

enum class DType : uint8_t { f64, f32, bf16, i64, i32, u8 };

/// bfloat16 as bits: the upper half of a float, rounded to nearest even. Device code reinterprets it as __nv_bfloat16.
struct alignas(2) bf16 {
  uint16_t bits;
  bf16() = default;
  TACTUS_HD explicit bf16(float value) {
    uint32_t u;
    memcpy(&u, &value, 4);
    // NaN must stay NaN: rounding could carry its payload into the exponent.
    bits = (u & 0x7fffffffu) > 0x7f800000u ? static_cast<uint16_t>((u >> 16) | 0x40)
                                           : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
  }
  TACTUS_HD explicit operator float() const {
    uint32_t u = static_cast<uint32_t>(bits) << 16;
    float value;
    memcpy(&value, &u, 4);
    return value;
  }
};

constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

std::string to_string(DType t);
/// Parses f64, f32, bf16; anything else is a ConfigError.
DType float_type_from_string(const std::string& name);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}

/// The type in which sums, statistics, losses and parameter gradients of T are kept (architecture, section 5).
template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<bf16> {
  using type = float;
};
template <class T>
using acc_t = typename Accumulator<T>::type;

constexpr DType accumulator_of(DType t) { return t == DType::bf16 ? DType::f32 : t; }

}  // namespace tactus
