// The text of a progress line.
#pragma once

#include <cstdint>
#include <string>

namespace tactus {

/// "[=====>    ] 512/1024 items, 88/s, 6 s left"; without a bar and a rest where `total` is -1.
std::string progress_text(int64_t done, int64_t total, double seconds, const std::string& unit);

}  // namespace tactus
