// Device helpers shared by all kernels: conversions, groups of eight columns, and reductions whose order depends on
// nothing but the launch shape, so that results are bitwise the same in every run.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "core/tensor.h"

namespace tactus::device {

constexpr int kGroup = 8;  ///< columns that one thread handles at a time: 16 bytes of bf16, 2 x 16 bytes of float
constexpr int kWarp = 32;
constexpr unsigned kFullMask = 0xffffffffu;
constexpr float kNegInf = -__builtin_huge_valf();

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }

template <class T>
__device__ inline T from_float(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    bf16 y;
    y.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return y;
  }
}

/// Reads `n` <= 8 consecutive values as floats, zeros beyond n. `wide`: p is 16-byte aligned whenever n is 8.
template <class T>
__device__ inline void load_group(const T* p, int n, bool wide, float (&v)[kGroup]) {
  if (wide && n == kGroup) {
    if constexpr (std::is_same_v<T, float>) {
      const float4 a = reinterpret_cast<const float4*>(p)[0], b = reinterpret_cast<const float4*>(p)[1];
      v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
      v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    } else {
      const uint4 a = *reinterpret_cast<const uint4*>(p);
      const uint32_t words[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        v[2 * i] = __uint_as_float(words[i] << 16);
        v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] = i < n ? to_float(p[i]) : 0.0f;
  }
}

template <class T>
__device__ inline void store_group(T* p, int n, bool wide, const float (&v)[kGroup]) {
  if (wide && n == kGroup) {
    if constexpr (std::is_same_v<T, float>) {
      reinterpret_cast<float4*>(p)[0] = make_float4(v[0], v[1], v[2], v[3]);
      reinterpret_cast<float4*>(p)[1] = make_float4(v[4], v[5], v[6], v[7]);
    } else {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words[i] = static_cast<uint32_t>(from_float<bf16>(v[2 * i]).bits) |
                   static_cast<uint32_t>(from_float<bf16>(v[2 * i + 1]).bits) << 16;
      }
      *reinterpret_cast<uint4*>(p) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      if (i < n) p[i] = from_float<T>(v[i]);
    }
  }
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
/// max(0, x) that keeps NaN.
__device__ inline float relu(float x) { return x < 0.0f ? 0.0f : x; }

/// Sum over the 32 lanes, the same bits in every lane: the butterfly pairs lanes symmetrically.
template <class A>
__device__ inline A warp_sum(A v) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(kFullMask, v, offset);
  return v;
}
/// Largest value over the 32 lanes; NaN is ignored.
__device__ inline float warp_max(float v) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(kFullMask, v, offset));
  return v;
}

__device__ inline int thread_in_block() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

/// Sum over a block of whole warps, warps in order, known to every thread. `scratch`: 32 values in shared memory.
template <class A>
__device__ inline A block_sum(A v, A* scratch) {
  const int thread = thread_in_block(), warps = static_cast<int>(blockDim.x * blockDim.y) / kWarp;
  v = warp_sum(v);
  __syncthreads();  // the scratch may still be read from an earlier reduction
  if (thread % kWarp == 0) scratch[thread / kWarp] = v;
  __syncthreads();
  A sum = scratch[0];
  for (int w = 1; w < warps; ++w) sum += scratch[w];
  return sum;
}

}  // namespace tactus::device
