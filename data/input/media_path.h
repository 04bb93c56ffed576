// The ways in which inputs name sound and features.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "data/item.h"

namespace tactus {

/// Reads audio columns:
///   a.wav, a.flac, a.ogg, ...   a sound file
///   a.npy                       a NumPy array
///   a.zip:OFFSET:BYTES          a stored member of a zip, an array or a sound file by its first bytes (fairseq)
///   a.ark:OFFSET                a matrix of a Kaldi archive
///   a.h5:DATASET                a dataset
/// Relative paths start from `root`. For one thread.
class MediaPaths {
 public:
  explicit MediaPaths(std::string root) : root_(std::move(root)) {}
  /// DataError, without a place, for a text that is none of these.
  MediaRef parse(const std::string& text);
  std::string resolve(const std::string& path) const;

 private:
  std::string root_;
  std::map<std::string, MediaRef::Kind> kind_in_zip_;
};

/// Seconds as "12.5"; DataError, without a place, for anything else or a negative number.
double parse_seconds(std::string_view text, const char* name);

}  // namespace tactus
