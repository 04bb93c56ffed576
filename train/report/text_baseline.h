#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tactus {

/// Translation without learning: for each query the target text of the training item whose source text is nearest by
/// the F1 overlap of its words and word pairs (ties: the first). What a model must beat to have understood more than
/// retrieval.
std::vector<std::string> nearest_neighbour_translations(const std::vector<std::string_view>& train_source,
                                                        const std::vector<std::string_view>& train_target,
                                                        const std::vector<std::string_view>& queries);

}  // namespace tactus
