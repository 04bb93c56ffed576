// Sound files as one channel of samples at 16 kHz, in the range of 16-bit integers (what Kaldi features are defined
// on).
#pragma once

#include <string>
#include <vector>

#include "data/item.h"

namespace tactus {

/// Reads the sound that `media` (kind audio) points to: WAV (PCM 8, 16, 24, 32 bits, float, A-law and mu-law,
/// WAVE_EXTENSIBLE), FLAC, Ogg with Vorbis or Opus; whole, as a byte range of a larger file, or a part in time, of
/// which only the part is decoded where the format can seek. Channels are averaged before resampling, so that one
/// resampling serves all; `speed` is part of that one resampling. Codecs whose decoders disagree (MP3 among them) are
/// refused. A part that ends beyond the recording is cut there. A valid file without samples gives none. An unreadable,
/// damaged or cut short file is a DataError naming media.to_string(); so are samples that are not finite and a part
/// that begins beyond the end.
std::vector<float> read_audio(const MediaRef& media);
/// The whole file.
std::vector<float> read_audio(const std::string& path);

}  // namespace tactus
