// MuST-C as it is released (Di Gangi et al. 2019): PATH/data/SPLIT/{wav/*.wav, txt/SPLIT.yaml, txt/SPLIT.LANGUAGE},
// where line i of the YAML file is the segment {duration, offset, speaker_id, wav} of line i of each text.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// `path`: the folder of a language pair (MUSTC/en-de); `source` names the transcripts (default en), `target` the
/// translations; the same language for both is speech recognition. Ids are WAV_NUMBER, numbered within a recording.
/// DataError when the files have different numbers of lines.
std::unique_ptr<ItemReader> open_mustc(const InputOptions& options, const std::string& split, OnError on_error);

}  // namespace tactus
