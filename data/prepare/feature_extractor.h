// The feature frames of one item, from its audio or from matrices that exist.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/features.h"
#include "data/item.h"

namespace tactus {

/// Immutable; serves any number of threads.
class FeatureExtractor {
 public:
  /// ConfigError for filter banks in builds without audio libraries, and for kind `none`.
  explicit FeatureExtractor(const FeatureOptions& options);
  ~FeatureExtractor();
  /// [frames, frame_width]. No frames for valid audio of less than one; `id` keys the dither. DataError when the media
  /// are unreadable, of the wrong kind or of another width.
  std::vector<float> frames(const MediaRef& media, const std::string& id) const;
  const FeatureOptions& options() const { return options_; }

 private:
  struct Audio;
  FeatureOptions options_;
  std::unique_ptr<Audio> audio_;
};

/// Options with a width that is known: takes an unset one from `media`, the first item's.
FeatureOptions resolve_width(FeatureOptions options, const MediaRef& media);

}  // namespace tactus
