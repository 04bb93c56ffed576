#pragma once

#include "train/checkpoint/checkpoint.h"

namespace tactus {

/// The state file of a checkpoint: moments by parameter name, and the counters.
void write_state_file(const std::string& path, const TrainState& state, ParameterStore& store,
                      const Optimiser& optimiser);
TrainState read_state_file(const std::string& path, ParameterStore& store, const Optimiser& optimiser);
/// The counters alone.
TrainState read_state_counters(const std::string& path);

}  // namespace tactus
