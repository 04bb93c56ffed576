// Counter-based random numbers (Philox 4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011),
// the same on CPU and CUDA. A dropout decision is a pure function of
//   key:     seed, step, module path hash, dropout slot   (mixed to 64 bits)
//   counter: utterance id, row within the sequence, head, group of 8 columns
// so masks do not depend on batch composition, tile shapes, ranks, recomputation or resume.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/dtype.h"

namespace tactus {

struct Philox4 {
  uint32_t v[4];
};

TACTUS_HD inline Philox4 philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0, p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1), c3 = static_cast<uint32_t>(p0), c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Mixes words to one 64-bit key (SplitMix64 finaliser after each). The multiplier makes the order matter: with a plain
/// sum, seed 1 in epoch 2 would draw what seed 2 draws in epoch 1.
TACTUS_HD constexpr uint64_t mix_key(uint64_t key, uint64_t word) {
  uint64_t z = key * 0xD1342543DE82EF95ull + 0x9E3779B97F4A7C15ull + word;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
/// FNV-1a hash of a module path.
constexpr uint64_t hash_path(std::string_view path) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (char c : path) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

/// Dropout of one site in one step. p = 0 switches it off.
struct DropoutKey {
  uint64_t key = 0;
  float p = 0;
  TACTUS_HD bool active() const { return p > 0; }
  /// 16-bit threshold: a draw below it is dropped.
  TACTUS_HD uint32_t threshold() const { return static_cast<uint32_t>(p * 65536.0f + 0.5f); }
  /// Scale of what is kept, exactly matching the threshold's probability.
  TACTUS_HD float scale() const { return 65536.0f / (65536.0f - static_cast<float>(threshold())); }
};

/// Keep bits of the 8 decisions of column group `group` (columns 8 group .. 8 group + 7): bit i set = kept.
/// `head` is 0 where there are no heads.
TACTUS_HD inline uint32_t keep_bits(const DropoutKey& d, uint32_t utterance, uint32_t row, uint32_t head,
                                    uint32_t group) {
  Philox4 r = philox(d.key, utterance, row, head, group);
  uint32_t t = d.threshold(), bits = 0;
  for (int i = 0; i < 4; ++i) {
    bits |= static_cast<uint32_t>((r.v[i] & 0xffffu) >= t) << (2 * i);
    bits |= static_cast<uint32_t>((r.v[i] >> 16) >= t) << (2 * i + 1);
  }
  return bits;
}

/// Sequential host generator for initialisation, shuffles and augmentation: Philox over a running counter.
class Rng {
 public:
  explicit Rng(uint64_t key) : key_(key) {}
  uint32_t next();
  double uniform();            ///< [0, 1) with 53 bits
  double normal();             ///< standard normal (Box-Muller)
  uint64_t below(uint64_t n);  ///< uniform in [0, n), unbiased; n > 0

 private:
  uint64_t key_, counter_ = 0;
  Philox4 block_{};
  int left_ = 0;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace tactus
