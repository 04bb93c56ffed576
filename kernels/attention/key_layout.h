// Keys from two sources without concatenation: the key rows of sequence i are its prompt rows followed by its own rows.
#pragma once

#include "core/segments.h"

namespace tactus {

/// prompt.offsets null: no prompt. Own rows are also the queries; own row t of sequence i has position P_i + t.
struct KeyLayout {
  SegmentsView prompt, own;
  TACTUS_HD int32_t prompt_length(int32_t i) const {
    return prompt.offsets ? prompt.offsets[i + 1] - prompt.offsets[i] : 0;
  }
  TACTUS_HD int32_t own_length(int32_t i) const { return own.offsets[i + 1] - own.offsets[i]; }
};

}  // namespace tactus
