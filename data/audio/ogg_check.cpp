#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/audio/container_check.h"

namespace tactus {
namespace {

constexpr int64_t kPageHeader = 27;
/// Decoders begin this much before the first sample that is wanted, at most.
constexpr double kLeadSeconds = 1;

/// CRC-32 with polynomial 0x04c11db7, not reflected, beginning with 0.
constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t r = i << 24;
    for (int bit = 0; bit < 8; ++bit) r = (r << 1) ^ ((r & 0x80000000u) != 0 ? 0x04c11db7u : 0u);
    table[i] = r;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

struct Page {
  int64_t begin, end;
  bool first, last;
  int64_t granule;  ///< samples up to its end; -1: none ends in it
  uint32_t serial, number;
};

std::string at_byte(int64_t at) { return " at byte " + std::to_string(at); }

/// False when there is no page at `at`.
bool read_page(const ByteRange& bytes, int64_t at, Page& page) {
  uint8_t head[kPageHeader + 255];
  const int64_t got = bytes.read(head, sizeof head, at);
  if (got < kPageHeader || std::memcmp(head, "OggS", 4) != 0 || head[4] != 0) return false;
  page.begin = at;
  page.first = (head[5] & 2) != 0, page.last = (head[5] & 4) != 0;
  page.granule =
      static_cast<int64_t>(static_cast<uint64_t>(little_endian(head + 10, 4)) << 32 | little_endian(head + 6, 4));
  page.serial = little_endian(head + 14, 4), page.number = little_endian(head + 18, 4);
  const int segments = head[26];
  if (got < kPageHeader + segments) return false;
  page.end = at + kPageHeader + segments;
  for (int i = 0; i < segments; ++i) page.end += head[kPageHeader + i];
  return true;
}

void check_page_crc(const ByteRange& bytes, const Page& page, std::vector<uint8_t>& buffer) {
  buffer.resize(static_cast<size_t>(page.end - page.begin));
  bytes.read_all(buffer.data(), page.end - page.begin, page.begin, "an Ogg page");
  const uint32_t expected = little_endian(buffer.data() + 22, 4);
  std::fill_n(buffer.begin() + 22, 4, uint8_t{0});
  uint32_t crc = 0;
  for (uint8_t b : buffer) crc = (crc << 8) ^ kCrcTable[(crc >> 24) ^ b];
  if (crc != expected)
    throw DataError(bytes.name() + ": damaged: wrong checksum of the page" + at_byte(page.begin) + "; get it again");
}

/// How granules become samples.
struct Codec {
  bool opus = false;
  double granules_per_second = 0;
  int64_t skip = 0;  ///< granules before the first sample
};

Codec read_codec(const ByteRange& bytes, const Page& page) {
  uint8_t packet[19] = {};
  const int64_t header = kPageHeader + 1;
  const int64_t size = std::min<int64_t>(page.end - page.begin - header, sizeof packet);
  if (size > 0) bytes.read_all(packet, size, page.begin + header, "the first Ogg page");
  auto begins = [&](std::string_view magic) { return std::memcmp(packet, magic.data(), magic.size()) == 0; };
  if (begins("\x01vorbis")) {
    const uint32_t rate = little_endian(packet + 12, 4);
    if (rate == 0) throw DataError(bytes.name() + ": damaged: its sample rate is 0");
    return {.granules_per_second = static_cast<double>(rate)};
  }
  if (begins("OpusHead")) return {.opus = true, .granules_per_second = 48000, .skip = little_endian(packet + 10, 2)};
  if (begins("\x7f"
             "FLAC"))
    refuse_format(bytes, "Ogg with FLAC");
  if (begins("Speex ")) refuse_format(bytes, "Ogg with Speex");
  if (begins("\x80theora") || begins("fishead")) refuse_format(bytes, "Ogg with video");
  refuse_format(bytes, "Ogg with an unknown codec");
}

}  // namespace

SoundContainer check_ogg(const ByteRange& bytes, TimeSpan part) {
  Page page{};
  if (!read_page(bytes, 0, page))
    throw DataError(bytes.name() + ": cut short: it ends in its first page; get it again");
  const Codec codec = read_codec(bytes, page);
  const uint32_t serial = page.serial;
  std::vector<uint8_t> buffer;
  int64_t granule = 0, before_last = 0;  // the two largest different ends of pages
  for (uint32_t number = page.number;; ++number) {
    if (page.serial != serial || (page.first && page.begin > 0)) {
      throw DataError(bytes.name() + ": holds more than one stream (another begins" + at_byte(page.begin) +
                      "); decode it into one FLAC file for each");
    }
    if (page.number != number)
      throw DataError(bytes.name() + ": damaged: a page is missing" + at_byte(page.begin) + "; get it again");
    if (page.end > bytes.size())
      throw DataError(bytes.name() + ": cut short: it ends in the page" + at_byte(page.begin) + "; get it again");
    const double from = static_cast<double>(granule - codec.skip) / codec.granules_per_second;
    const double to = static_cast<double>(page.granule - codec.skip) / codec.granules_per_second;
    const bool outside = page.granule > 0 && (to < part.begin - kLeadSeconds || from > part.end + kLeadSeconds);
    if (!outside) check_page_crc(bytes, page, buffer);
    if (page.granule > granule) before_last = granule, granule = page.granule;
    if (page.last) break;
    const int64_t next = page.end;
    if (!read_page(bytes, next, page)) {
      throw DataError(bytes.name() +
                      (bytes.size() - next < kPageHeader ? ": cut short: its last page is missing"
                                                         : ": damaged: no page" + at_byte(next)) +
                      "; get it again");
    }
  }
  const int64_t end = page.end;
  if (read_page(bytes, end, page) && page.first) {
    throw DataError(bytes.name() + ": holds more than one stream (another begins" + at_byte(end) +
                    "); decode it into one FLAC file for each");
  }
  SoundContainer container{.empty = granule <= codec.skip, .end = end};
  // Positions in Vorbis' last page are wrong by what its end cuts off.
  if (!codec.opus) container.seek_limit = std::max<int64_t>(before_last - 1, 0);
  return container;
}

}  // namespace tactus
