#include "kernels/shared/dropout_draws.h"

#include <algorithm>
#include <bit>

namespace tactus {
namespace {

constexpr int kLanes = 16;

/// Ten Philox rounds on kLanes counters side by side: the same arithmetic as philox(), in vector registers.
void philox_lanes(uint64_t key, uint32_t (&c)[4][kLanes]) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c[0][l],
                     p1 = static_cast<uint64_t>(0xCD9E8D57u) * c[2][l];
      c[0][l] = static_cast<uint32_t>(p1 >> 32) ^ c[1][l] ^ k0;
      c[2][l] = static_cast<uint32_t>(p0 >> 32) ^ c[3][l] ^ k1;
      c[1][l] = static_cast<uint32_t>(p1);
      c[3][l] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}

}  // namespace

void dropout_draws(const DropoutKey& key, uint32_t utterance, uint32_t row, int64_t rows, uint32_t head, uint32_t group,
                   int64_t groups, uint16_t* draws) {
  // Decisions 2i and 2i + 1 are the low and the high half of word i, so words in memory order are draws in column
  // order.
  static_assert(std::endian::native == std::endian::little);
  alignas(64) uint32_t c[4][kLanes];
  alignas(64) uint32_t words[4 * kLanes];
  const int64_t total = rows * groups;
  uint32_t r = row;
  int64_t g = 0;
  for (int64_t base = 0; base < total; base += kLanes) {
    if (g + kLanes <= groups) {
      for (int l = 0; l < kLanes; ++l) {
        c[0][l] = utterance, c[1][l] = r, c[2][l] = head, c[3][l] = group + static_cast<uint32_t>(g + l);
      }
      g += kLanes;
      if (g == groups) g = 0, ++r;
    } else {
      for (int l = 0; l < kLanes; ++l) {
        c[0][l] = utterance, c[1][l] = r, c[2][l] = head, c[3][l] = group + static_cast<uint32_t>(g);
        if (++g == groups) g = 0, ++r;
      }
    }
    philox_lanes(key.key, c);
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < 4; ++i) words[4 * l + i] = c[i][l];
    }
    std::memcpy(draws + base * 8, words, sizeof(uint32_t) * 4 * std::min<int64_t>(kLanes, total - base));
  }
}

}  // namespace tactus
