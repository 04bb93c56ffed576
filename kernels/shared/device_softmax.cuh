// Running maximum and sum of exponentials over a row by one block, and a total order of (value, index) pairs.
#pragma once

#include "kernels/shared/device_math.cuh"

namespace tactus::device {

/// sum = sum of exp(x - max). An entry of -inf adds nothing, NaN makes the sum NaN.
struct RunningSoftmax {
  float max = kNegInf, sum = 0;

  __device__ void add_group(const float (&x)[kGroup], int n) {
    float top = max;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) top = i < n ? fmaxf(top, x[i]) : top;
    if (top > max) {
      sum *= max == kNegInf ? 0.0f : expf(max - top);
      max = top;
    }
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      if (i < n && x[i] != kNegInf) sum += expf(x[i] - max);
    }
  }
  __device__ void merge(float other_max, float other_sum) {
    const float top = fmaxf(max, other_max);
    const float mine = max == kNegInf ? 0.0f : expf(max - top);
    const float other = other_max == kNegInf ? 0.0f : expf(other_max - top);
    // A symmetrical sum: both partners of a butterfly get the same bits.
    sum = __fadd_rn(__fmul_rn(sum, mine), __fmul_rn(other_sum, other));
    max = top;
  }
  __device__ float log_sum() const { return max + logf(sum); }
};

/// Merges the states of a block of whole warps; every thread gets the result. `scratch`: 64 floats in shared memory.
__device__ inline RunningSoftmax block_merge(RunningSoftmax s, float* scratch) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float max = __shfl_xor_sync(kFullMask, s.max, offset), sum = __shfl_xor_sync(kFullMask, s.sum, offset);
    s.merge(max, sum);
  }
  const int thread = thread_in_block(), warps = static_cast<int>(blockDim.x * blockDim.y) / kWarp;
  __syncthreads();
  if (thread % kWarp == 0) scratch[thread / kWarp] = s.max, scratch[kWarp + thread / kWarp] = s.sum;
  __syncthreads();
  RunningSoftmax all{scratch[0], scratch[kWarp]};
  for (int w = 1; w < warps; ++w) all.merge(scratch[w], scratch[kWarp + w]);
  return all;
}

/// Log-sum-exp of scale * row by one block of whole warps.
template <class T>
__device__ inline float block_log_sum_exp(const T* row, int64_t cols, float scale, bool wide, float* scratch) {
  RunningSoftmax s;
  for (int64_t c = static_cast<int64_t>(thread_in_block()) * kGroup; c < cols;
       c += static_cast<int64_t>(blockDim.x * blockDim.y) * kGroup) {
    const int n = static_cast<int>(cols - c < kGroup ? cols - c : kGroup);
    float x[kGroup];
    load_group(row + c, n, wide, x);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) x[i] *= scale;
    s.add_group(x, n);
  }
  return block_merge(s, scratch).log_sum();
}

/// Keys whose order is: larger value first, then lower index. 0 stands for nothing, and for NaN.
__device__ inline uint64_t order_key(float x, int32_t index) {
  if (x != x) return 0;
  const uint32_t bits = __float_as_uint(x + 0.0f);  // -0 and +0 are one value
  const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(ordered) << 32 | (0xffffffffu - static_cast<uint32_t>(index));
}
__device__ inline int32_t index_of_key(uint64_t key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key));
}
/// Largest key of a block of whole warps. `scratch`: 32 values in shared memory.
__device__ inline uint64_t block_max_key(uint64_t key, uint64_t* scratch) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(kFullMask, static_cast<unsigned long long>(key), offset);
    key = other > key ? other : key;
  }
  const int thread = thread_in_block(), warps = static_cast<int>(blockDim.x * blockDim.y) / kWarp;
  __syncthreads();
  if (thread % kWarp == 0) scratch[thread / kWarp] = key;
  __syncthreads();
  for (int w = 0; w < warps; ++w) key = scratch[w] > key ? scratch[w] : key;
  return key;
}

}  // namespace tactus::device
