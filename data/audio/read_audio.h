// Sound files as one channel of samples at 16 kHz, in the range of 16-bit integers (what Kaldi features are defined
// on).
#pragma once

#include <string>
#include <vector>

namespace tactus {

/// Reads wav, flac, ogg (Vorbis, Opus) and whatever else libsndfile knows. Channels are averaged before resampling, so
/// that one resampling serves all. An unreadable, damaged, cut short or empty file is a DataError naming `path`; so are
/// samples that are not finite.
std::vector<float> read_audio(const std::string& path);

}  // namespace tactus
