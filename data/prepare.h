// From manifests and sound files to one corpus file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"
#include "data/features.h"
#include "data/tokenizer.h"

namespace tactus {

struct PrepareOptions {
  std::string manifests;  ///< folder with train.tsv, dev.tsv, test.tsv
  std::string output;     ///< corpus file to write
  std::vector<std::string> splits = {"train", "dev", "test"};
  FbankOptions features;
  TokenizerOptions target{.vocab_size = 8000};
  TokenizerOptions source;  ///< vocab_size 0: no tokenizer for src_text
  std::string on_error = "stop";
  int64_t threads = 0;
  void visit(ConfigVisitor& v);
};

struct PreparedSplit {
  std::string name;
  int64_t kept = 0, dropped = 0, frames = 0;
  std::string dropped_reasons;
};

/// Reads <manifests>/<split>.tsv for each split, trains the tokenizers on the text of the first one, computes features
/// with `threads` threads (0: all cores) and writes the corpus atomically. The result does not depend on the number of
/// threads. Progress goes to the log. An utterance whose audio is missing, damaged or shorter than one frame stops with
/// DataError or, under on_error: skip, is dropped and counted. ConfigError in builds without audio libraries.
std::vector<PreparedSplit> prepare(const PrepareOptions& options);

}  // namespace tactus
