#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "data/audio/container_check.h"

namespace tactus {
namespace {

constexpr int64_t kInformationBytes = 18;

/// CRC-16 with polynomial 0x8005, not reflected, beginning with 0.
constexpr std::array<uint16_t, 256> make_crc_table() {
  std::array<uint16_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t r = i << 8;
    for (int bit = 0; bit < 8; ++bit) r = (r << 1) ^ ((r & 0x8000u) != 0 ? 0x8005u : 0u);
    table[i] = static_cast<uint16_t>(r);
  }
  return table;
}
constexpr std::array<uint16_t, 256> kCrcTable = make_crc_table();

/// Whether a frame ends with the last byte: one that begins with a sync code in the last `longest` bytes and whose
/// checksum, its own last two bytes included, comes out as 0.
bool ends_with_frame(const ByteRange& bytes, int64_t first_frame, int64_t longest) {
  const int64_t begin = std::max(first_frame, bytes.size() - longest);
  std::vector<uint8_t> tail(static_cast<size_t>(bytes.size() - begin));
  bytes.read_all(tail.data(), static_cast<int64_t>(tail.size()), begin, "its last frame");
  // Chance makes one sync code in 32 KiB; a file full of them must not keep us.
  int candidates = 256;
  for (size_t at = tail.size() - 1; at-- > 0 && candidates > 0;) {
    if (tail[at] != 0xff || (tail[at + 1] & 0xfe) != 0xf8) continue;
    --candidates;
    uint16_t crc = 0;
    for (size_t i = at; i < tail.size(); ++i) crc = static_cast<uint16_t>((crc << 8) ^ kCrcTable[(crc >> 8) ^ tail[i]]);
    if (crc == 0) return true;
  }
  return false;
}

}  // namespace

SoundContainer check_flac(const ByteRange& bytes) {
  std::array<uint8_t, 4 + kInformationBytes> head{};
  bytes.read_all(head.data(), static_cast<int64_t>(head.size()), 4, "the stream information");
  const uint8_t* information = head.data() + 4;
  const bool known = (information[13] & 0x0f) != 0 ||
                     std::any_of(information + 14, information + 18, [](uint8_t b) { return b != 0; });
  int64_t at = 4;
  for (bool last = false; !last;) {
    uint8_t block[4];
    bytes.read_all(block, 4, at, "a metadata block");
    last = (block[0] & 0x80) != 0;
    at += 4 + (block[1] << 16 | block[2] << 8 | block[3]);
  }
  if (at > bytes.size() || (known && at == bytes.size()))
    throw DataError(bytes.name() + ": cut short: it ends before its samples begin; get it again");
  if (!known && at < bytes.size()) {
    const int64_t block = information[2] << 8 | information[3], channels = (information[12] >> 1 & 7) + 1;
    const int64_t bits = ((information[12] & 1) << 4 | information[13] >> 4) + 1;
    // No frame is longer than its samples stored as they are (side channels have one bit more) and its headers.
    if (!ends_with_frame(bytes, at, block * channels * (bits + 1) / 8 + 256)) {
      throw DataError(bytes.name() +
                      ": cut short: its header does not say how many samples there are, and the last frame is not "
                      "whole; get it again");
    }
  }
  return {.empty = at == bytes.size(), .end = bytes.size()};
}

}  // namespace tactus
