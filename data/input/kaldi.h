// Kaldi's data folders (kaldi-asr.org, "Data preparation"), as ESPnet's and k2's recipes write them too.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// PATH/SPLIT with feats.scp, or wav.scp and possibly segments; text; utt2spk, utt2num_frames and utt2dur where they
/// are. `text` is the target; with `target` X the file text.X is, and with `source` too text.SOURCE (or `text` where
/// that is "text") is the source. Items come in the order of segments, feats.scp or wav.scp. Utterances without text or
/// without audio are dropped and counted as missing_text and missing_audio.
std::unique_ptr<ItemReader> open_kaldi(const InputOptions& options, const std::string& split, OnError on_error);

/// The file that an entry of wav.scp names: a path, or a command that does nothing but print a file as WAV ("cat F |",
/// "flac -c -d -s F |", "sox F -t wav - |"). Empty for any other command.
std::string file_of_wav_entry(const std::string& entry);

}  // namespace tactus
