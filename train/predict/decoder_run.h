// Decoding of a split with a trained model, and what it costs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/tasks/speech_task.h"

namespace tactus {

/// A model read back from its file, ready to decode.
struct LoadedModel {
  std::string path;
  ModelInfo info;
  RunOptions options;
  Tokenizer target;
  std::unique_ptr<SpeechTask> task;
};

/// `overrides`: "decode.beam=5" and the like, on top of the stored configuration; `device` and `threads` as in
/// make_context ("" and 0: as stored).
LoadedModel load_model(const std::string& path, const std::string& device, int64_t threads,
                       const std::vector<std::string>& overrides = {});

struct DecodedLine {
  std::string id, hypothesis;
  double score = 0;
};

struct DecodeReport {
  std::vector<DecodedLine> lines;  ///< one for each utterance of the split, in its order
  double seconds = 0;              ///< encoder and search, summed over batches; loading and text excluded
  int64_t frames = 0, tokens = 0;
  MemoryUse memory;  ///< peaks of the decoding
  double mean_memory =
      0;               ///< live bytes at the fullest moment of each batch, averaged: comparable to published averages
  SearchMemory cache;  ///< largest batch
  int64_t empty = 0;   ///< utterances too short for the encoder: empty output
  int64_t unchanging = 0;  ///< utterances of which every frame is the same, as in silence: empty output
};

/// DataError when the corpus does not fit the model (features or tokenizer). Progress goes to the log. Error when
/// stopped by a signal.
DecodeReport decode_split(LoadedModel& model, Corpus& corpus, const std::string& split);

/// id, hypothesis, score: a header and one line for each input. Tabs, line breaks and NUL bytes in a field become
/// spaces, bytes that are no UTF-8 U+FFFD.
std::string decoded_text(const DecodeReport& report);
/// The same, written atomically.
void write_decoded(const std::string& path, const DecodeReport& report);

}  // namespace tactus
