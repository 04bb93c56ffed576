#pragma once

#include <string>
#include <vector>

namespace tactus {

enum class AverageChoice { best, last };

/// Averages the weights of the `count` best or newest checkpoints of a run (fewer where there are fewer) into `out`;
/// returns the updates that went in. DataError when there are none or one does not verify.
std::vector<long> average_checkpoints(const std::string& run, AverageChoice choice, long count, const std::string& out);

}  // namespace tactus
