#include "data/audio/container_check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/error.h"

namespace tactus {
namespace {

using Head = std::array<uint8_t, 16>;

/// The beginnings of well-known formats that are not read, to name them.
struct Magic {
  int at;
  std::string_view bytes, name;
};
constexpr Magic kForeign[] = {{0, "ID3", "MP3"},
                              {0, "riff", "Wave64"},
                              {0, "FORM", "AIFF"},
                              {0, ".snd", "AU"},
                              {0, "NIST_1A", "NIST SPHERE"},
                              {0, "caff", "Core Audio"},
                              {0, "#!AMR", "AMR"},
                              {0, "wvpk", "WavPack"},
                              {0, "MAC ", "Monkey's Audio"},
                              {4, "ftyp", "MP4 (AAC or ALAC)"},
                              {0, "\x1a\x45\xdf\xa3", "Matroska or WebM"},
                              {0, "\x30\x26\xb2\x75", "Windows Media"}};

bool begins(const Head& head, std::string_view magic, size_t at = 0) {
  return std::memcmp(head.data() + at, magic.data(), magic.size()) == 0;
}

[[noreturn]] void refuse_unknown(const ByteRange& bytes, const Head& head) {
  for (const Magic& m : kForeign) {
    if (begins(head, m.bytes, static_cast<size_t>(m.at))) refuse_format(bytes, std::string(m.name));
  }
  const bool frame_sync = head[0] == 0xff && (head[1] & 0xe0) == 0xe0;
  if (frame_sync) refuse_format(bytes, (head[1] & 0x06) == 0 ? "AAC" : "MP3");
  char text[32];
  std::snprintf(text, sizeof text, "%02x %02x %02x %02x", head[0], head[1], head[2], head[3]);
  throw DataError(bytes.name() + ": cannot read as audio: neither WAV, FLAC nor Ogg (it begins with the bytes " + text +
                  ")");
}

void check_wave_codec(const ByteRange& bytes, const uint8_t* format, uint32_t size) {
  uint32_t tag = little_endian(format, 2);
  if (tag == 0xfffe && size >= 26) tag = little_endian(format + 24, 2);  // WAVE_EXTENSIBLE: the sub-format's beginning
  switch (tag) {
    case 1:
    case 3:
    case 6:
    case 7:
      return;
    case 2:
      refuse_format(bytes, "WAV with Microsoft ADPCM");
    case 0x11:
      refuse_format(bytes, "WAV with IMA ADPCM");
    case 0x31:
      refuse_format(bytes, "WAV with GSM 6.10");
    case 0x50:
    case 0x55:
      refuse_format(bytes, "WAV with MP3");
    default:
      refuse_format(bytes, "WAV with codec number " + std::to_string(tag));
  }
}

/// Chunks fill even numbers of bytes.
int64_t padded(uint32_t size) { return static_cast<int64_t>(size) + (size & 1); }

/// Whether the bytes from `at` to the end are chunks, or none.
bool only_chunks(const ByteRange& bytes, int64_t at) {
  uint8_t chunk[8];
  while (bytes.read(chunk, 8, at) == 8) at += 8 + padded(little_endian(chunk + 4, 4));
  return at == bytes.size();
}

/// `long_size`: what the header of a file beyond 4 GiB says, or -1.
SoundContainer check_data_chunk(const ByteRange& bytes, int64_t at, uint32_t short_size, int64_t long_size) {
  const int64_t size = long_size >= 0 ? long_size : short_size;
  const int64_t rest = bytes.size() - at;
  if (size == 0) {
    if (!only_chunks(bytes, at)) {
      throw DataError(bytes.name() + ": its header promises no samples, but " + std::to_string(rest) +
                      " bytes follow; the program that wrote it did not finish, write it again");
    }
    return {.empty = true, .end = bytes.size()};
  }
  const bool unknown = long_size < 0 && (size == 0x7fffffff || size == 0xffffffff || size == 0x7ffff000);
  if (!unknown && size > rest) {
    throw DataError(bytes.name() + ": cut short: the header promises " + std::to_string(size) +
                    " bytes of samples, the file has " + std::to_string(rest) + "; get it again");
  }
  return {.empty = rest == 0, .end = bytes.size()};
}

SoundContainer check_wave(const ByteRange& bytes) {
  bool has_format = false;
  int64_t long_size = -1;
  for (int64_t at = 12;;) {
    uint8_t chunk[8];
    bytes.read_all(chunk, 8, at, "the header of a chunk");
    const uint32_t size = little_endian(chunk + 4, 4);
    at += 8;
    if (std::memcmp(chunk, "fmt ", 4) == 0) {
      uint8_t format[26] = {};
      if (size < 16)
        throw DataError(bytes.name() + ": damaged: its format chunk has " + std::to_string(size) + " bytes");
      bytes.read_all(format, std::min<int64_t>(size, 26), at, "the format chunk");
      check_wave_codec(bytes, format, size);
      has_format = true;
    } else if (std::memcmp(chunk, "data", 4) == 0) {
      if (!has_format) throw DataError(bytes.name() + ": damaged: samples come before the format chunk");
      return check_data_chunk(bytes, at, size, long_size);
    } else if (std::memcmp(chunk, "ds64", 4) == 0) {
      uint8_t sizes[16];
      bytes.read_all(sizes, sizeof sizes, at, "the sizes of the file");
      long_size = static_cast<int64_t>(
          (static_cast<uint64_t>(little_endian(sizes + 12, 4)) << 32 | little_endian(sizes + 8, 4)) &
          (~uint64_t{0} >> 1));
    }
    at += padded(size);
  }
}

}  // namespace

void refuse_format(const ByteRange& bytes, const std::string& found) {
  throw DataError(bytes.name() + ": is " + found +
                  ", which is not read (WAV with PCM, float, A-law or mu-law samples, FLAC, Ogg Vorbis and Ogg Opus "
                  "are); convert it to FLAC, for example: ffmpeg -i FILE FILE.flac");
}

SoundContainer check_container(const ByteRange& bytes, TimeSpan part) {
  if (bytes.size() == 0) throw DataError(bytes.name() + ": has 0 bytes, expected a sound file");
  Head head{};
  const int64_t got = bytes.read(head.data(), static_cast<int64_t>(head.size()), 0);
  const bool riff = begins(head, "RIFF") || begins(head, "RF64");  // the second for files beyond 4 GiB (EBU Tech 3306)
  if (riff && (got < 12 || begins(head, "WAVE", 8))) return check_wave(bytes);
  if (begins(head, "fLaC")) return check_flac(bytes);
  if (begins(head, "OggS")) return check_ogg(bytes, part);
  refuse_unknown(bytes, head);
}

}  // namespace tactus
