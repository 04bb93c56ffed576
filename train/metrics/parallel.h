#pragma once

#include <string>
#include <vector>

namespace tactus {

/// What every corpus metric asks of its input: at least one segment, at least one reference set, as many lines in each
/// set as hypotheses, and UTF-8 throughout. Throws DataError that names the metric, the counts, or the line (from 1).
void check_parallel(const std::string& metric, const std::vector<std::string>& hypotheses,
                    const std::vector<std::vector<std::string>>& references);
void check_parallel(const std::string& metric, const std::vector<std::string>& hypotheses,
                    const std::vector<std::string>& references);

}  // namespace tactus
