// Eight numbers that go through the same arithmetic, one a lane: lets the FFT library transform eight frames at once.
#pragma once

#include <cstdint>

namespace tactus {

/// Operators act on each lane by itself, so a lane's result does not depend on the others, nor on how many of them the
/// machine's instructions take at a time.
struct alignas(64) Pack {
  static constexpr int kLanes = 8;
  double v[kLanes];

  Pack() = default;
  Pack(double x) {
    for (double& lane : v) lane = x;
  }
  /// Lane 0. The FFT library computes its constants with the functions of <cmath>; in them all lanes are equal.
  operator double() const { return v[0]; }

  Pack& operator+=(const Pack& o) {
    for (int i = 0; i < kLanes; ++i) v[i] += o.v[i];
    return *this;
  }
  Pack& operator-=(const Pack& o) {
    for (int i = 0; i < kLanes; ++i) v[i] -= o.v[i];
    return *this;
  }
  Pack& operator*=(const Pack& o) {
    for (int i = 0; i < kLanes; ++i) v[i] *= o.v[i];
    return *this;
  }
  Pack& operator/=(const Pack& o) {
    for (int i = 0; i < kLanes; ++i) v[i] /= o.v[i];
    return *this;
  }
  Pack operator-() const {
    Pack r;
    for (int i = 0; i < kLanes; ++i) r.v[i] = -v[i];
    return r;
  }
  friend Pack operator+(Pack a, const Pack& b) { return a += b; }
  friend Pack operator-(Pack a, const Pack& b) { return a -= b; }
  friend Pack operator*(Pack a, const Pack& b) { return a *= b; }
  friend Pack operator/(Pack a, const Pack& b) { return a /= b; }
  friend Pack operator*(double a, const Pack& b) { return Pack(a) *= b; }
  friend Pack operator*(Pack a, double b) { return a *= Pack(b); }
  friend Pack operator/(Pack a, std::size_t b) { return a /= Pack(static_cast<double>(b)); }
  friend Pack operator*(std::size_t a, const Pack& b) { return Pack(static_cast<double>(a)) *= b; }
};

}  // namespace tactus
