// Finds RIFF files that end before their own header says, which sound libraries read without a word.
#pragma once

#include <string>

namespace tactus {

/// DataError when `path` is a RIFF/WAVE file whose data chunk reaches beyond the end of the file. Sizes of 0 and
/// 0xffffffff, which programs write that pipe their output, are taken as unknown. Other formats pass.
void check_riff_complete(const std::string& path);

}  // namespace tactus
