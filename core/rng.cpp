#include "core/rng.h"

#include <cmath>

namespace tactus {

uint32_t Rng::next() {
  if (left_ == 0) {
    // The first word marks sequential use, so that these draws never meet those of dropout under the same key.
    block_ = philox(key_, 0xffffffffu, static_cast<uint32_t>(counter_ >> 32), static_cast<uint32_t>(counter_), 0x5eedu);
    ++counter_;
    left_ = 4;
  }
  return block_.v[4 - left_--];
}

double Rng::uniform() {
  uint64_t high = next() >> 5, low = next() >> 6;
  return static_cast<double>((high << 26) | low) * (1.0 / 9007199254740992.0);
}

double Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log1p(-uniform())), angle = 6.283185307179586476925 * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

uint64_t Rng::below(uint64_t n) {
  const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  uint64_t draw;
  do {
    draw = (static_cast<uint64_t>(next()) << 32) | next();
  } while (draw >= limit);
  return draw % n;
}

}  // namespace tactus
