// JSON lines: one object a line, with the keys of manifests.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// PATH/SPLIT.jsonl. Keys as the columns of manifests; `source` and `target` name other keys for src_text and tgt_text
/// (document, summary). Without a key id, ids are SPLIT-LINE. Other keys whose value in the first line is a string,
/// number or truth value are kept as extra columns; nested ones are passed over.
std::unique_ptr<ItemReader> open_json_lines(const InputOptions& options, const std::string& split, OnError on_error);

}  // namespace tactus
