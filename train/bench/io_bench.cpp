#include "train/bench/io_bench.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "core/files/json.h"
#include "core/rng.h"
#include "data/corpus/corpus_writer.h"

namespace tactus {
namespace {

constexpr int64_t kBins = 80;
constexpr int64_t kWarmBytes = int64_t{8} << 30;  // more than that hardly stays in the cache

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// A folder that goes away with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / ("tactus-bench-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void warm(const CorpusSplit& split) {
  std::vector<float> frames;
  int64_t bytes = 0;
  for (int64_t i = 0; i < split.size() && bytes < kWarmBytes; ++i) {
    frames.resize(static_cast<size_t>(split.frames(i) * split.bins()));
    split.read_frames(i, frames.data());
    bytes += 2 * static_cast<int64_t>(frames.size());
  }
}

}  // namespace

void write_noise_corpus(const std::string& path, int64_t frames) {
  CorpusOptions options;
  options.features.mel_bins = kBins;
  TokenizerOptions bytes;
  bytes.model = "bytes";
  const Tokenizer tokenizer = Tokenizer::train({"noise"}, bytes, "noise");
  CorpusWriter writer(path, options, tokenizer, std::nullopt);
  writer.begin_split("train", SplitColumns());
  constexpr int64_t kLongest = 1600;
  std::vector<float> noise(static_cast<size_t>(2 * kLongest * kBins));
  Rng rng(1);
  for (float& x : noise) x = static_cast<float>(8 + 4 * rng.normal());
  int64_t items = 0;
  for (int64_t written = 0; written < frames; ++items) {
    const auto length = std::min<int64_t>(frames - written, 100 + static_cast<int64_t>(rng.below(kLongest - 100)));
    Item item;
    item.id = "noise" + std::to_string(items);
    item.tgt_text = "noise of " + std::to_string(length) + " frames";
    const size_t begin = rng.below(kLongest * kBins);
    writer.add(item, std::span<const float>(noise.data() + begin, static_cast<size_t>(length * kBins)));
    written += length;
  }
  writer.end_split(report_json(items, items, 0, {}));
  writer.commit();
}

IoBenchResult bench_io(const IoBenchOptions& options, const Context& ctx) {
  std::optional<TemporaryFolder> folder;
  IoBenchResult result;
  result.corpus = options.corpus;
  if (options.corpus.empty()) {
    folder.emplace();
    result.corpus = folder->file("corpus.h5");
    write_noise_corpus(result.corpus, options.synthetic);
  }
  Corpus corpus = Corpus::open(result.corpus);
  const auto split = corpus.split(options.split);
  if (!split->has_frames()) throw ConfigError(result.corpus + ": split " + options.split + " has no frames to read");
  warm(*split);
  BatchOptions batches;
  batches.max_frames = options.max_frames;
  const BatchPlan plan = BatchPlan::for_training(split, batches, 1);
  BatchContents contents;
  contents.layers = corpus.features().kind == "stored" ? corpus.features().layers : 1;
  contents.dtype = options.dtype;
  contents.pool = HostPool::make(ctx, feature_bytes(plan, batches, options.dtype));
  BatchLoader loader(plan, contents, {}, options.loader);
  // The first batches bring memory in.
  for (int64_t b = 0; b < options.loader.prefetch + options.loader.threads; ++b) {
    result.pinned = loader.next()->features.pinned();
  }
  const Clock::time_point begin = Clock::now();
  while (result.seconds < options.seconds) {
    const std::optional<Batch> batch = loader.next();
    ++result.batches;
    result.frames += batch->frames();
    result.seconds = since(begin);
  }
  result.utterances = split->size(), result.bins = split->bins();
  result.frames_per_second = static_cast<double>(result.frames) / result.seconds;
  result.stored_bytes_per_second = result.frames_per_second * static_cast<double>(2 * result.bins);
  result.audio_seconds_per_second = result.frames_per_second / corpus.features().frames_per_second;
  result.memory = contents.pool->use();
  if (folder) result.corpus = "noise";
  return result;
}

std::string IoBenchResult::to_string() const {
  char text[512];
  std::snprintf(text, sizeof text,
                "corpus: %s, %lld utterances, %lld bins\n"
                "batches: %lld in %.2f s, %lld frames\n"
                "%.0f frames/s, %.0f MB/s of 16-bit features, %.0f s of audio per second\n"
                "memory: %lld blocks of %.1f MiB in all, %s\n",
                corpus.c_str(), static_cast<long long>(utterances), static_cast<long long>(bins),
                static_cast<long long>(batches), seconds, static_cast<long long>(frames), frames_per_second,
                stored_bytes_per_second / 1e6, audio_seconds_per_second, static_cast<long long>(memory.blocks),
                static_cast<double>(memory.bytes) / (1 << 20), pinned ? "page-locked" : "not page-locked");
  return text;
}

std::string IoBenchResult::to_json(const IoBenchOptions& options) const {
  JsonWriter json;
  json.begin_object().field("benchmark", "io").field("corpus", corpus).field("utterances", utterances);
  json.field("bins", bins).field("threads", options.loader.threads).field("prefetch", options.loader.prefetch);
  json.field("dtype", tactus::to_string(options.dtype)).field("max_frames", options.max_frames);
  json.field("batches", batches).field("frames", frames).field("seconds", seconds);
  json.field("frames_per_second", frames_per_second).field("stored_bytes_per_second", stored_bytes_per_second);
  json.field("audio_seconds_per_second", audio_seconds_per_second).field("pinned", pinned);
  return json.field("host_bytes", memory.bytes).end_object().str();
}

}  // namespace tactus
