// What sound files say of themselves. Sound libraries read damaged and shortened files without a word, and which codecs
// they know depends on their version; so the structure is looked at first.
#pragma once

#include <cstdint>
#include <limits>

#include "data/audio/byte_range.h"

namespace tactus {

/// A part of a recording, in seconds from its beginning.
struct TimeSpan {
  double begin = 0, end = std::numeric_limits<double>::infinity();
};

struct SoundContainer {
  bool empty = false;  ///< valid, without a single sample
  int64_t end;         ///< bytes that belong to it
  /// Libsndfile (1.2) gives wrong samples after seeking beyond this one.
  int64_t seek_limit = std::numeric_limits<int64_t>::max();
};

/// RIFF/WAVE and RF64 with PCM, float, A-law or mu-law samples, FLAC, Ogg with one stream of Vorbis or Opus. DataError,
/// naming what was found, for other formats and codecs, and for files that end before they should: a data chunk or a
/// metadata block that reaches beyond the end, an Ogg stream without its last page. The sizes 0x7fffffff, 0xffffffff
/// and 0x7ffff000, which programs write that cannot go back to the header, stand for all bytes to the end.
SoundContainer check_container(const ByteRange& bytes, TimeSpan part);

/// The same for Ogg (RFC 3533), whose pages are numbered and have checksums: DataError as well for a page that is
/// missing or, in `part`, damaged.
SoundContainer check_ogg(const ByteRange& bytes, TimeSpan part);

/// The same for FLAC (RFC 9639). Where the header does not know the number of samples, the last frame must be whole.
SoundContainer check_flac(const ByteRange& bytes);

/// DataError: `found` is no format that is read, and what to do.
[[noreturn]] void refuse_format(const ByteRange& bytes, const std::string& found);

inline uint32_t little_endian(const uint8_t* b, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= static_cast<uint32_t>(b[i]) << (8 * i);
  return value;
}

}  // namespace tactus
