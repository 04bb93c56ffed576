// XSum as it is released (Narayan et al. 2018): PATH/bbc-summary-data/ID.summary, and a JSON file of the ids of each
// split.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// `path`: the folder that holds XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json and bbc-summary-data. Splits: train,
/// validation (also dev, valid), test. src_text = the article's body, tgt_text = its first sentence, white space
/// normalised to single spaces. Articles that the download lacks are counted as missing_article. Exports as JSON lines
/// or pairs of text files are read by the formats jsonl and text_pair.
std::unique_ptr<ItemReader> open_xsum(const InputOptions& options, const std::string& split, OnError on_error);

}  // namespace tactus
