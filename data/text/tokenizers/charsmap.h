// The character table inside a SentencePiece model, which the library follows without looking.
#pragma once

#include <string_view>

namespace tactus {

/// Whether every step that the library's normaliser can take in `charsmap` (NormalizerSpec.precompiled_charsmap) stays
/// inside it. The bytes are u32 size, a double array of size / 4 units (darts-clone, Yata et al.), and texts that end
/// with NUL, to which the leaves of the array point. An empty table is sound: there is none.
bool charsmap_is_sound(std::string_view charsmap);

}  // namespace tactus
