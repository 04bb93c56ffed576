#include "data/batches/batch_options.h"

namespace tactus {

void BatchOptions::visit(ConfigVisitor& v) {
  v.field("batch", batch,
          {.doc = "fixed: the limits given here; auto: max_frames (text: max_tokens) is measured so that the largest "
                  "batch fits into memory",
           .choices = {"fixed", "auto"}});
  v.field("grouping", grouping,
          {.doc = "Which training items share a batch: those of similar length, of roughly similar length, or any",
           .choices = {"length", "buckets", "random"}});
  v.field("buckets", buckets, {.doc = "Classes of length of grouping: buckets", .min = 1, .max = 100000});
  v.field("max_frames", max_frames,
          {.doc = "Feature frames in a batch, summed", .unit = "frames", .min = 1, .max = 1e9});
  v.field("max_tokens", max_tokens,
          {.doc = "Text: source tokens in a batch, summed, and target tokens likewise",
           .unit = "tokens",
           .min = 1,
           .max = 1e9});
  v.field("max_utterances", max_utterances, {.doc = "Items in a batch; 0: no limit", .min = 0, .max = 1e6});
  v.field(
      "multiple_of", multiple_of,
      {.doc = "Training batches hold a multiple of this many items where they hold that many", .min = 1, .max = 1024});
  v.field("min_source_frames", min_source_frames,
          {.doc = "Shorter training utterances are dropped", .unit = "frames", .min = 1, .max = 1e6});
  v.field("max_source_frames", max_source_frames,
          {.doc = "Longer training utterances: see on_long; 0: no limit", .unit = "frames", .min = 0, .max = 1e9});
  v.field("min_source_tokens", min_source_tokens,
          {.doc = "Text: training items with a shorter source are dropped", .unit = "tokens", .min = 1, .max = 1e6});
  v.field("max_source_tokens", max_source_tokens,
          {.doc = "Text: training items with a longer source: see on_long; 0: no limit",
           .unit = "tokens",
           .min = 0,
           .max = 1e9});
  v.field("max_target_tokens", max_target_tokens,
          {.doc = "Training items with more target tokens, </s> included: see on_long; 0: no limit",
           .unit = "tokens",
           .min = 0,
           .max = 1e6});
  v.field("on_long", on_long,
          {.doc = "Training items beyond a limit: leave them out, cut them, or fail",
           .choices = {"drop", "truncate", "error"}});
}

}  // namespace tactus
