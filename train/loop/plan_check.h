#pragma once

#include <string>

#include "train/loop/options.h"

namespace tactus {

/// The dry run behind `tactus check`: opens the corpus, plans an epoch, builds the model, runs forward and backward of
/// the largest batch without an update, and says what training would do and need.
std::string check_plan(const RunOptions& options);

}  // namespace tactus
