#include "data/prepare.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/log.h"
#include "data/corpus.h"
#include "data/manifest.h"
#if defined(TACTUS_WITH_AUDIO)
#include "data/audio/fbank.h"
#include "data/audio/read_audio.h"
#endif

namespace tactus {

void PrepareOptions::visit(ConfigVisitor& v) {
  v.field("manifests", manifests, {.doc = "Folder that holds SPLIT.tsv for each split", .required = true});
  v.field("output", output, {.doc = "Corpus file to write", .required = true});
  v.field("splits", splits, {.doc = "Splits; tokenizers are trained on the first"});
  v.section("features", features, "How features are computed");
  v.section("target", target, "Tokenizer of tgt_text");
  v.section("source", source, "Tokenizer of src_text, for an auxiliary CTC loss");
  v.field("on_error", on_error, {.doc = "What to do with an unusable utterance", .choices = {"stop", "skip"}});
  v.field("threads", threads, {.doc = "Threads for audio; 0: all cores", .min = 0, .max = 4096});
}

#if defined(TACTUS_WITH_AUDIO)
namespace {

/// Utterances in flight per thread: enough to keep threads busy, little memory.
constexpr int64_t kBlockPerThread = 16;
/// Difference between a manifest's n_frames and the computed frames that is taken for rounding.
constexpr int64_t kFrameTolerance = 3;

struct Utterance {
  std::vector<float> frames;
  std::string reason;  ///< why it cannot be used, or ""
  std::exception_ptr error;
};

void compute(const Manifest& manifest, const ManifestRow& row, const Fbank& fbank, Utterance& utterance) {
  try {
    std::vector<float> samples = read_audio(manifest.audio_path(row));
    utterance.frames = fbank.compute(samples);
    if (utterance.frames.empty()) {
      utterance.reason = "too_short";
      throw DataError(manifest.audio_path(row) + ": " + std::to_string(samples.size()) +
                      " samples, less than one frame of " + std::to_string(kFrameSamples));
    }
  } catch (const DataError& e) {
    if (utterance.reason.empty()) utterance.reason = "bad_audio";
    utterance.error = std::make_exception_ptr(DataError(manifest.where(row) + ": " + e.what()));
  } catch (...) {
    // Anything else (memory, say) is no property of the utterance and must not be skipped.
    utterance.error = std::current_exception();
  }
}

/// Keeps or drops one computed utterance.
void take(const ManifestRow& row, Utterance& utterance, OnError on_error, CorpusWriter& writer, DropCounts& dropped,
          PreparedSplit& result) {
  if (utterance.error) {
    if (on_error == OnError::stop || utterance.reason.empty()) std::rethrow_exception(utterance.error);
    try {
      std::rethrow_exception(utterance.error);
    } catch (const DataError& e) {
      count_drop(dropped, utterance.reason, e.what());
    }
    return;
  }
  writer.add(row, utterance.frames);
  ++result.kept;
}

PreparedSplit prepare_split(const std::string& name, const Manifest& manifest, const PrepareOptions& options,
                            int threads, CorpusWriter& writer) {
  const OnError on_error = on_error_from_string(options.on_error);
  std::vector<std::unique_ptr<Fbank>> banks;
  for (int t = 0; t < threads; ++t) banks.push_back(std::make_unique<Fbank>(options.features));
  const auto total = static_cast<int64_t>(manifest.rows.size());
  PreparedSplit result;
  result.name = name;
  DropCounts dropped = manifest.dropped;
  int64_t disagree = 0;
  std::string first_disagreement;
  writer.begin_split(name, manifest.has_src_text);
  for (int64_t begin = 0; begin < total; begin += kBlockPerThread * threads) {
    const int64_t count = std::min(kBlockPerThread * threads, total - begin);
    std::vector<Utterance> block(static_cast<size_t>(count));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < count; ++i)
      compute(manifest, manifest.rows[begin + i], *banks[omp_get_thread_num()], block[i]);
    // Taken in the manifest's order: neither the file nor which error is reported depends on the threads.
    for (int64_t i = 0; i < count; ++i) {
      const ManifestRow& row = manifest.rows[begin + i];
      const int64_t frames = static_cast<int64_t>(block[i].frames.size()) / options.features.mel_bins;
      take(row, block[i], on_error, writer, dropped, result);
      result.frames += frames;
      if (frames > 0 && std::abs(frames - row.n_frames) > kFrameTolerance && disagree++ == 0) {
        first_disagreement =
            manifest.where(row) + " says " + std::to_string(row.n_frames) + ", audio has " + std::to_string(frames);
      }
    }
    stderr_log().live("prepare " + name + ": " + std::to_string(begin + count) + "/" + std::to_string(total));
  }
  writer.end_split(dropped);
  for (const auto& [reason, drop] : dropped) result.dropped += drop.count;
  result.dropped_reasons = to_string(dropped);
  stderr_log().end_live();
  note("prepare " + name + ": kept " + std::to_string(result.kept) + " utterances, " + std::to_string(result.frames) +
       " frames; dropped " + std::to_string(result.dropped) +
       (result.dropped > 0 ? ": " + result.dropped_reasons : ""));
  if (disagree > 0) {
    warn(std::to_string(disagree) + " utterances of " + name + " have another n_frames than their audio (" +
         first_disagreement + "); the audio counts");
  }
  if (result.kept == 0) throw DataError(manifest.path + ": no usable utterance in split " + name);
  return result;
}

Tokenizer train_on(const Manifest& manifest, std::string ManifestRow::*column, const std::string& name,
                   const TokenizerOptions& options) {
  std::vector<std::string> sentences;
  for (const ManifestRow& row : manifest.rows) sentences.push_back(row.*column);
  return Tokenizer::train(sentences, options, manifest.path + " (" + name + ")");
}

std::vector<Manifest> read_manifests(const PrepareOptions& options) {
  std::vector<Manifest> manifests;
  for (const std::string& split : options.splits) {
    auto path = std::filesystem::path(options.manifests) / (split + ".tsv");
    manifests.push_back(read_manifest(path.string(), on_error_from_string(options.on_error)));
    if (options.source.vocab_size > 0 && !manifests.back().has_src_text) {
      throw DataError(path.string() +
                      ":1: column 'src_text' is missing, which the source tokenizer needs; "
                      "add it or set source.vocab_size to 0");
    }
  }
  return manifests;
}

}  // namespace

std::vector<PreparedSplit> prepare(const PrepareOptions& options) {
  if (options.splits.empty()) throw ConfigError("prepare: splits is empty, expected at least train");
  if (options.target.vocab_size == 0) throw ConfigError("prepare: target.vocab_size is 0, expected 8 or more");
  int threads = options.threads > 0 ? static_cast<int>(options.threads) : omp_get_max_threads();
  std::vector<Manifest> manifests = read_manifests(options);
  note("prepare: training the tokenizer" + std::string(options.source.vocab_size > 0 ? "s" : ""));
  Tokenizer target = train_on(manifests[0], &ManifestRow::tgt_text, "tgt_text", options.target);
  std::optional<Tokenizer> source;
  if (options.source.vocab_size > 0)
    source = train_on(manifests[0], &ManifestRow::src_text, "src_text", options.source);
  CorpusWriter writer(options.output, options.features, target, source);
  std::vector<PreparedSplit> results;
  for (size_t i = 0; i < manifests.size(); ++i)
    results.push_back(prepare_split(options.splits[i], manifests[i], options, threads, writer));
  writer.commit();
  return results;
}

#else

std::vector<PreparedSplit> prepare(const PrepareOptions&) {
  throw ConfigError(
      "prepare: this program was built without audio libraries (TACTUS_AUDIO=OFF); build with TACTUS_AUDIO=ON, "
      "or prepare the corpus elsewhere and copy the file");
}

#endif

}  // namespace tactus
