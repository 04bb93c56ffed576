// SLURP as it is released (Bastianelli et al. 2020): PATH/{train,train_synthetic,devel,test}.jsonl with the sound files
// in AUDIO/slurp_real and AUDIO/slurp_synth.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// `path`: the folder of the .jsonl files; `audio_root`: the folder of slurp_real and slurp_synth (default: `path`).
/// Splits: train (real and synthetic), train_real, train_synthetic, devel, test. Each recording is an item:
/// tgt_text = "SCENARIO_ACTION TRANSCRIPT", src_text = TRANSCRIPT, subset real or synthetic. In transcripts "@" is read
/// as " at ", "#" as " hashtag ", commas and full stops are dropped; synthetic ones are in lower case.
std::unique_ptr<ItemReader> open_slurp(const InputOptions& options, const std::string& split, OnError on_error);

}  // namespace tactus
