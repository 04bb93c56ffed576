#include "data/audio/container_check.h"

#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace tactus {
namespace {

uint32_t little_endian(const unsigned char* b) {
  return static_cast<uint32_t>(b[0]) | static_cast<uint32_t>(b[1]) << 8 | static_cast<uint32_t>(b[2]) << 16 |
         static_cast<uint32_t>(b[3]) << 24;
}

}  // namespace

void check_riff_complete(const ByteRange& range) {
  unsigned char head[12];
  if (range.read(head, 12, 0) < 12) return;
  if (std::memcmp(head, "RIFF", 4) != 0 || std::memcmp(head + 8, "WAVE", 4) != 0) return;
  for (int64_t at = 12; at + 8 <= range.size();) {
    unsigned char chunk[8];
    range.read(chunk, 8, at);
    const uint32_t bytes = little_endian(chunk + 4);
    if (std::memcmp(chunk, "data", 4) == 0) {
      const bool unknown = bytes == 0 || bytes == 0xffffffffu;
      if (!unknown && at + 8 + bytes > range.size()) {
        throw DataError(range.name() + ": cut short: the header promises " + std::to_string(bytes) +
                        " bytes of samples, the file has " + std::to_string(range.size() - at - 8));
      }
      return;
    }
    at += 8 + static_cast<int64_t>(bytes) + (bytes & 1);  // chunks are padded to even sizes
  }
}

}  // namespace tactus
