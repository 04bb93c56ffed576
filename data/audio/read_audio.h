// Sound files as one channel of samples at 16 kHz, in the range of 16-bit integers (what Kaldi features are defined
// on).
#pragma once

#include <string>
#include <vector>

#include "data/item.h"

namespace tactus {

/// Reads the sound that `media` (kind audio) points to: WAV (PCM 8, 16, 24, 32 bits, float, A-law and mu-law,
/// WAVE_EXTENSIBLE, RF64), FLAC, Ogg with Vorbis or Opus; whole, as a byte range of a larger file, or a part in time,
/// of which only the part is decoded. A part begins and ends at the nearest samples; it may reach beyond the recording
/// by half a second, as published segmentations do, and then ends with it.
///
/// Channels are averaged before resampling, so that one resampling serves all; `speed` s is part of that one
/// resampling: N samples at R Hz become round(16000 N / (R s)), as `sox speed` makes them.
///
/// Empty for a valid file, or a part of one, that holds no samples. DataError naming media.to_string() for a file that
/// is missing, damaged, cut short or has no bytes at all, for samples that are not finite, a part that begins beyond
/// the end, more than 2^29 samples (9 hours at 16 kHz), and for other formats and codecs: published results have
/// changed with the decoder of MP3.
std::vector<float> read_audio(const MediaRef& media);
/// The whole file.
std::vector<float> read_audio(const std::string& path);

}  // namespace tactus
