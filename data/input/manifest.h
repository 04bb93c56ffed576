// Manifests: tab-separated tables with a header line that names the columns, one item a line.
//
//   id, tgt_text                                   required
//   audio                                          sound or features, as data/input/media_path.h reads them
//   n_frames                                       whole number of 10 ms frames
//   start, duration                                seconds: a part of a long recording
//   src_text, src2_text, speaker, subset           optional
// Other columns are kept as they are.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// PATH/SPLIT.tsv. There is no quoting and no escaping: a field is every byte between two tabs.
std::unique_ptr<ItemReader> open_manifest(const InputOptions& options, const std::string& split, OnError on_error);
/// The same in fairseq's dialect: a backslash takes the next character, a tab or a backslash, as it is.
std::unique_ptr<ItemReader> open_fairseq_tsv(const InputOptions& options, const std::string& split, OnError on_error);

}  // namespace tactus
