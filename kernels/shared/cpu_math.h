// Vectorisable scalar functions and row primitives of the CPU kernels. Sums run in SIMD lanes: their order is fixed by
// the binary, not by the thread count.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tactus {

template <class T>
constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

inline double exp_of(double x) { return std::exp(x); }

/// exp in single precision without branches or calls, so that loops over it become vector code; about 1 ulp.
/// exp(-inf) is exactly 0 (masked weights must vanish), overflow gives inf, NaN stays NaN.
/// Range reduction x = n ln 2 + r with ln 2 in two parts, then the minimax polynomial of Cephes' expf on |r| <= ln 2
/// / 2.
inline float exp_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low mantissa bits
  x = x < -105.0f ? -105.0f : x;
  x = x > 90.0f ? 90.0f : x;
  const float shifted = x * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors: n reaches -151 (results are denormal or 0) and 129 (inf).
  const uint32_t k = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(k) >> 1);
  return p * std::bit_cast<float>((half + 127u) << 23) * std::bit_cast<float>((k - half + 127u) << 23);
}

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + exp_of(-x));
}

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// y += alpha x.
template <class T>
void add_scaled(T alpha, const T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

/// Largest value; -inf for none. A NaN may be passed over: what is computed with the result then meets it.
template <class T>
T row_max(const T* x, int64_t n) {
  T top = kMinusInfinity<T>;
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

/// sum of exp(scale x - base).
template <class T>
T sum_exp(const T* x, T scale, T base, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += exp_of(scale * x[i] - base);
  return sum;
}

/// log of the sum of exp over a row.
template <class T>
T log_sum_exp(const T* x, int64_t n) {
  const T top = row_max(x, n);
  return top + std::log(sum_exp(x, T(1), top, n));
}

}  // namespace tactus
