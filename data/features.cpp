#include "data/features.h"

namespace tactus {

void FeatureOptions::visit(ConfigVisitor& v) {
  v.field("kind", kind,
          {.doc = "fbank: log-mel filter banks of the audio; stored: matrices that exist; none: items are text",
           .choices = {"fbank", "stored", "none"}});
  v.field("window", window, {.doc = "Window function of a frame", .choices = {"povey", "hamming"}});
  v.field("mel_bins", mel_bins, {.doc = "Number of mel filters", .min = 4, .max = 256});
  v.field("low_hz", low_hz, {.doc = "Lower edge of the first filter", .unit = "Hz", .min = 0, .max = 8000});
  v.field("high_hz", high_hz, {.doc = "Upper edge of the last filter", .unit = "Hz", .min = 0, .max = 8000});
  v.field("dither", dither,
          {.doc = "Standard deviation of noise added to the samples, keyed by the item's id; 0: none",
           .unit = "16-bit steps",
           .min = 0,
           .max = 100});
  v.field("width", width,
          {.doc = "Stored features: numbers in a frame of one layer; 0: as in the first item", .min = 0, .max = 65536});
  v.field("layers", layers, {.doc = "Stored features: layers in each frame", .min = 1, .max = 256});
  v.field("frames_per_second", frames_per_second,
          {.doc = "Stored features: frames of a second of audio", .unit = "frames/s", .min = 0.1, .max = 100000});
}

int64_t FeatureOptions::frame_width() const {
  if (kind == "none") return 0;
  return kind == "stored" ? layers * width : mel_bins;
}

}  // namespace tactus
