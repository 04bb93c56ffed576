#include "data/features.h"

namespace tactus {

void FbankOptions::visit(ConfigVisitor& v) {
  v.field("window", window, {.doc = "Window function of a frame", .choices = {"povey", "hamming"}});
  v.field("mel_bins", mel_bins, {.doc = "Number of mel filters", .min = 4, .max = 256});
  v.field("low_hz", low_hz, {.doc = "Lower edge of the first filter", .unit = "Hz", .min = 0, .max = 8000});
  v.field("high_hz", high_hz, {.doc = "Upper edge of the last filter", .unit = "Hz", .min = 0, .max = 8000});
}

}  // namespace tactus
