#include "data/prepare/prepare.h"

#include <omp.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/files/files.h"
#include "core/process/log.h"
#include "core/process/signals.h"
#include "data/corpus/corpus_format.h"
#include "data/corpus/corpus_writer.h"
#include "data/prepare/prepare_split.h"
#include "data/text/line_sample.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

constexpr const char* kPartsSuffix = ".parts";

void check_options(const PrepareOptions& o) {
  if (o.splits.empty()) throw ConfigError("prepare: splits is empty, expected at least train");
  for (auto name = o.splits.begin(); name != o.splits.end(); ++name) {
    if (std::find(o.splits.begin(), name, *name) != name)
      throw ConfigError("prepare: split '" + *name + "' is given twice");
    if (name->empty() || name->find('/') != std::string::npos || *name == "." ||
        *name == corpus_format::kTokenizerGroup)
      throw ConfigError("prepare: '" + *name + "' cannot be the name of a split");
  }
  if (o.joint_vocabulary && o.source.enabled())
    throw ConfigError("prepare: joint_vocabulary takes the options of target for both sides; leave out source");
  if (!o.target.enabled()) throw ConfigError("prepare: target.model is none, expected a tokenizer");
  on_error_from_string(o.on_error);
  if (o.speeds.empty()) throw ConfigError("prepare: speeds is empty, expected [1.0] for the audio as it is");
  for (double speed : o.speeds) {
    if (speed < 0.25 || speed > 4)
      throw ConfigError("prepare: speed " + std::to_string(speed) + " is outside 0.25 to 4");
    if (speed != 1 && o.features.kind != "fbank")
      throw ConfigError("prepare: speeds need audio (features.kind: fbank)");
  }
  if (o.store == "on_the_fly" && o.features.kind == "none")
    throw ConfigError("prepare: store: on_the_fly needs audio or features; features.kind is none");
}

/// Features with every width known, from the first item that has some.
FeatureOptions resolved_features(const PrepareOptions& o) {
  if (o.features.kind != "stored" || o.features.width > 0) return o.features;
  const auto reader = open_items(o.input, o.splits[0], on_error_from_string(o.on_error));
  Item item;
  while (reader->next(item)) {
    const FeatureOptions features = resolve_width(o.features, item.media);
    if (features.width > 0) return features;
  }
  throw DataError(o.input.path + ": split " + o.splits[0] + " has no stored features; give features.width");
}

struct Tokenizers {
  std::optional<Tokenizer> target, source;
};

/// Loads or trains them; training reads the first split once.
Tokenizers make_tokenizers(const PrepareOptions& o) {
  Tokenizers made;
  if (!o.target.file.empty()) made.target = Tokenizer::load(o.target, "target");
  if (!o.source.file.empty()) made.source = Tokenizer::load(o.source, "source");
  if (o.joint_vocabulary) made.source = made.target;
  const bool train_target = !made.target, train_source = !made.source && o.source.enabled();
  if (!train_target && !train_source) return made;
  const auto reader = open_items(o.input, o.splits[0], on_error_from_string(o.on_error));
  LineSample target(o.target.training_lines), source(o.source.training_lines);
  for (Item item; reader->next(item);) {
    if (train_target && !is_blank(item.tgt_text)) target.add(item.tgt_text);
    if (reader->binary_source() || !(train_source || o.joint_vocabulary)) continue;
    LineSample& side = o.joint_vocabulary ? target : source;
    if (!is_blank(item.src_text)) side.add(item.src_text);
    if (!is_blank(item.src2_text)) side.add(item.src2_text);
  }
  note("prepare: training the tokenizer" + std::string(train_target && train_source ? "s" : ""));
  const std::string what = o.input.path + ": split " + o.splits[0];
  if (train_target) made.target = Tokenizer::train(target.lines(), o.target, what + " (tgt_text)");
  if (o.joint_vocabulary) made.source = made.target;
  if (!made.source && train_source) made.source = Tokenizer::train(source.lines(), o.source, what + " (src_text)");
  return made;
}

/// Every split is opened before the long work begins.
void check_splits(const PrepareOptions& o) {
  for (const std::string& split : o.splits) open_items(o.input, split, on_error_from_string(o.on_error));
}

}  // namespace

void PrepareOptions::visit(ConfigVisitor& v) {
  v.section("input", input, "Format and place of the data");
  v.field("output", output, {.doc = "Corpus file to write", .required = true});
  v.field("splits", splits, {.doc = "Splits; tokenizers are trained on the first"});
  v.section("features", features, "What the frames are");
  v.field(
      "store", store,
      {.doc = "How frames are kept; on_the_fly: not at all, the corpus refers to the audio and loaders compute them",
       .choices = {"f16", "f32", "on_the_fly"}});
  v.field("speeds", speeds, {.doc = "Copies of the first split at these speeds (speed perturbation)"});
  v.field("min_seconds", min_seconds,
          {.doc = "Shorter audio of the first split is dropped; 0: no limit", .unit = "seconds", .min = 0});
  v.field("max_seconds", max_seconds,
          {.doc = "Longer audio of the first split is dropped; 0: no limit", .unit = "seconds", .min = 0});
  v.section("target", target, "Tokenizer of tgt_text");
  v.section("source", source, "Tokenizer of src_text: for text, and for an auxiliary CTC loss");
  v.field("joint_vocabulary", joint_vocabulary,
          {.doc = "One tokenizer, with the options of target, trained on the texts of both sides"});
  v.field("on_error", on_error, {.doc = "What to do with an unusable item", .choices = {"stop", "skip"}});
  v.field("empty", empty,
          {.doc = "Blank text and audio of less than one frame; auto: drop in the first split, keep elsewhere",
           .choices = {"auto", "stop", "drop", "keep"}});
  v.field("copy_text", copy_text, {.doc = "Keep the texts in the corpus beside their tokens"});
  v.field("threads", threads, {.doc = "Threads; 0: all cores", .min = 0, .max = 4096});
}

std::string PreparedSplit::to_string() const {
  std::string text = name + ": " + std::to_string(kept) + " of " + std::to_string(items) + " items kept, ";
  if (frames > 0) text += std::to_string(frames) + " frames, ";
  if (source_tokens > 0) text += std::to_string(source_tokens) + " source tokens, ";
  text += std::to_string(target_tokens) + " target tokens; " + std::to_string(total(dropped)) + " dropped";
  if (!dropped.empty()) text += ": " + tactus::to_string(dropped);
  if (reused > 0) text += " (" + std::to_string(reused) + " items were done before)";
  return text;
}

std::vector<PreparedSplit> prepare(const PrepareOptions& options) {
  check_options(options);
  const SignalGuard guard;
  std::unique_ptr<FeatureExtractor> extractor;
  // First, because a build may lack what it takes.
  if (options.features.kind == "fbank") extractor = std::make_unique<FeatureExtractor>(options.features);
  check_splits(options);
  const FolderLock alone(std::filesystem::absolute(options.output).parent_path(), "tactus prepare");
  PrepareOptions o = options;
  o.features = resolved_features(options);
  if (o.features.kind == "stored") extractor = std::make_unique<FeatureExtractor>(o.features);
  const Tokenizers tokenizers = make_tokenizers(o);
  CorpusWriter writer(o.output, {o.features, frame_store_from_string(o.store), o.copy_text}, *tokenizers.target,
                      tokenizers.source);
  const PrepareJob job{o, writer, extractor.get(), PartStore(o.output + kPartsSuffix),
                       o.threads > 0 ? static_cast<int>(o.threads) : omp_get_max_threads()};
  std::vector<PreparedSplit> results;
  for (size_t i = 0; i < o.splits.size(); ++i) results.push_back(prepare_split(job, o.splits[i], i == 0));
  writer.commit();
  job.parts.remove_all();
  return results;
}

}  // namespace tactus
