// From the files of a data set to one corpus file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "data/features.h"
#include "data/inputs.h"
#include "data/text/tokenizer.h"

namespace tactus {

struct PrepareOptions {
  InputOptions input;
  std::string output;  ///< corpus file to write
  std::vector<std::string> splits = {"train", "dev", "test"};
  FeatureOptions features;
  std::string store = "f16";  ///< f16, f32, or on_the_fly: the corpus refers to the audio, frames are computed at load
  std::vector<double> speeds = {1.0};       ///< copies of the first split at these speeds
  double min_seconds = 0, max_seconds = 0;  ///< audio of the first split outside is dropped; 0: no limit
  TokenizerOptions target{.model = "unigram", .vocab_size = 8000};
  TokenizerOptions source;        ///< of src_text (and src2_text)
  bool joint_vocabulary = false;  ///< one tokenizer, with the options of `target`, for both sides
  std::string on_error = "stop";
  std::string empty = "auto";  ///< blank text and audio of less than a frame: stop, drop, keep; auto: drop in the first
                               ///< split, keep elsewhere
  bool copy_text = true;       ///< keep the texts in the corpus beside their tokens
  int64_t threads = 0;
  void visit(ConfigVisitor& v);
};

/// What became of the items of one split.
struct PreparedSplit {
  std::string name;
  int64_t items = 0;  ///< looked at
  int64_t kept = 0, frames = 0, source_tokens = 0, target_tokens = 0, unknown_tokens = 0;
  DropCounts dropped;
  int64_t reused = 0;  ///< kept from an interrupted preparation
  /// A line or two for people.
  std::string to_string() const;
};

/// Reads the items of each split, trains the tokenizers on the text of the first one, computes or copies features with
/// `threads` threads (0: all cores) and writes the corpus atomically. The result does not depend on the number of
/// threads, nor on interruptions: finished parts lie in OUTPUT.parts/ until the corpus is complete, and the next call
/// of the same recipe on the same data goes on from them. Progress goes to the log. Stops between parts with exit code
/// 143 after SIGTERM.
std::vector<PreparedSplit> prepare(const PrepareOptions& options);

}  // namespace tactus
