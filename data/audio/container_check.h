// Finds RIFF files that end before their own header says, which sound libraries read without a word.
#pragma once

#include "data/audio/byte_range.h"

namespace tactus {

/// DataError when the range is a RIFF/WAVE file whose data chunk reaches beyond its end. Sizes of 0 and 0xffffffff,
/// which programs write that pipe their output, are taken as unknown. Other formats pass.
void check_riff_complete(const ByteRange& range);

}  // namespace tactus
