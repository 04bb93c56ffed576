// Two text files whose lines go together.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// PATH/SPLIT.SOURCE and PATH/SPLIT.TARGET; without `source`, PATH/SPLIT.TARGET alone (language modelling). Ids are
/// SPLIT-LINE. Empty lines are items. DataError when the files have different numbers of lines.
std::unique_ptr<ItemReader> open_text_pair(const InputOptions& options, const std::string& split, OnError on_error);

}  // namespace tactus
