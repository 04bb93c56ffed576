#include "data/prepare/feature_extractor.h"

#include "core/error.h"
#include "core/rng.h"
#include "data/matrix_file.h"
#if defined(TACTUS_WITH_AUDIO)
#include "data/audio/fbank.h"
#include "data/audio/read_audio.h"
#endif

namespace tactus {

#if defined(TACTUS_WITH_AUDIO)
struct FeatureExtractor::Audio {
  explicit Audio(const FeatureOptions& options) : fbank(options) {}
  std::vector<float> frames(const MediaRef& media, uint64_t key) const { return fbank.compute(read_audio(media), key); }
  Fbank fbank;
};
#else
struct FeatureExtractor::Audio {
  explicit Audio(const FeatureOptions&) {
    throw ConfigError(
        "features.kind: fbank needs audio, and this program was built without audio libraries (TACTUS_AUDIO=OFF); "
        "build "
        "with TACTUS_AUDIO=ON, or prepare the corpus elsewhere and copy the file");
  }
  std::vector<float> frames(const MediaRef&, uint64_t) const { return {}; }
};
#endif

FeatureExtractor::FeatureExtractor(const FeatureOptions& options) : options_(options) {
  if (options.kind == "none") throw ConfigError("features.kind is none: text has no frames");
  if (options.kind == "fbank") audio_ = std::make_unique<Audio>(options);
}

FeatureExtractor::~FeatureExtractor() = default;

std::vector<float> FeatureExtractor::frames(const MediaRef& media, const std::string& id) const {
  if (audio_ != nullptr) {
    if (media.kind != MediaRef::Kind::audio) {
      throw DataError((media.path.empty() ? "no audio" : media.to_string() + ": a feature matrix") +
                      ", but features.kind is fbank; set it to stored for features that exist");
    }
    return audio_->frames(media, hash_path(id));
  }
  if (media.kind == MediaRef::Kind::audio || media.kind == MediaRef::Kind::none) {
    throw DataError((media.path.empty() ? "no features" : media.to_string() + ": audio") +
                    ", but features.kind is stored; set it to fbank to compute them");
  }
  FeatureMatrix m = read_feature_matrix(media, options_.frames_per_second);
  if (m.rows > 0 && (m.layers != options_.layers || m.width != options_.width)) {
    throw DataError(media.to_string() + ": " + std::to_string(m.layers) + " x " + std::to_string(m.width) +
                    " numbers in a frame, expected " + std::to_string(options_.layers) + " x " +
                    std::to_string(options_.width) + " (features.layers x features.width)");
  }
  return std::move(m.values);
}

FeatureOptions resolve_width(FeatureOptions options, const MediaRef& media) {
  if (options.kind != "stored" || options.width > 0) return options;
  if (media.kind == MediaRef::Kind::none || media.kind == MediaRef::Kind::audio) return options;
  FeatureMatrix m = read_feature_matrix(media, options.frames_per_second);
  options.width = m.width;
  if (options.layers == 1) options.layers = m.layers;
  return options;
}

}  // namespace tactus
