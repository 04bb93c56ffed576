#include "data/text/tokenizers/charsmap.h"

#include <cstdint>
#include <cstring>

namespace tactus {
namespace {

constexpr size_t kLabels = 256;

/// A unit of the double array: a label in bits 0 to 7, bit 8 when it has a leaf, the offset of its children above; or
/// with bit 31 the value of a leaf.
struct Unit {
  uint32_t bits;
  bool is_value() const { return (bits >> 31) != 0; }
  bool has_leaf() const { return (bits >> 8) & 1; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200u) >> 6); }
  uint32_t value() const { return bits & 0x7fffffffu; }
};

}  // namespace

bool charsmap_is_sound(std::string_view charsmap) {
  if (charsmap.empty()) return true;
  uint32_t size = 0;
  if (charsmap.size() < sizeof size) return false;
  std::memcpy(&size, charsmap.data(), sizeof size);
  charsmap.remove_prefix(sizeof size);
  if (size < sizeof(Unit) || size >= charsmap.size() || charsmap.back() != '\0') return false;
  const size_t units = size / sizeof(Unit), texts = charsmap.size() - size;
  const auto unit = [&](size_t at) {
    Unit u{};
    std::memcpy(&u, charsmap.data() + at * sizeof u, sizeof u);
    return u;
  };
  // The library starts at unit 0 and steps onto units whose label is a byte: bit 31 is clear in them. All of these are
  // checked, reached or not, since unused units of a good table point to themselves.
  for (size_t at = 0; at < units; ++at) {
    const Unit node = unit(at);
    if (at != 0 && node.is_value()) continue;
    const size_t children = at ^ node.offset();
    if ((children | (kLabels - 1)) >= units) return false;
    if (node.has_leaf() && unit(children).value() >= texts) return false;
  }
  return true;
}

}  // namespace tactus
