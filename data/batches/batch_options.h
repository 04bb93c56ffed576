// How items are put together to batches.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/config.h"

namespace tactus {

/// Lengths of a source are frames, or tokens where the items are text (both documents of a pair together).
struct BatchOptions {
  std::string batch = "fixed";       ///< fixed: the limits below; auto: as large as memory allows
  std::string grouping = "length";   ///< length: similar lengths together; buckets: roughly similar; random: any
  int64_t buckets = 32;              ///< classes of length of grouping `buckets`
  int64_t max_frames = 40000;        ///< sum over a batch
  int64_t max_tokens = 40000;        ///< text: sum over a batch, of source and of target tokens each
  int64_t max_utterances = 0;        ///< 0: no limit
  int64_t multiple_of = 1;           ///< sizes of batches are multiples of this where possible
  int64_t min_source_frames = 5;     ///< shorter items are dropped
  int64_t max_source_frames = 6000;  ///< 0: no limit
  int64_t min_source_tokens = 1;     ///< text, each document: items with less are dropped
  int64_t max_source_tokens = 1024;  ///< text, each document; 0: no limit
  int64_t max_target_tokens = 1024;  ///< </s> included; 0: no limit
  std::string on_long = "drop";      ///< what becomes of longer items: drop, truncate or error
  void visit(ConfigVisitor& v);
};

}  // namespace tactus
