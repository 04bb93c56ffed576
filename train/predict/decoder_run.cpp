#include "train/predict/decoder_run.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/files/files.h"
#include "core/process/log.h"
#include "core/process/signals.h"
#include "data/text/text_lines.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loop/train_data.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether no frame differs from the first one, as in digital silence or a steady tone: there are no words in it. A
/// single frame says nothing when normalisation has made it zero.
bool is_unchanging(const char* frames, int64_t length, int64_t row_bytes) {
  if (length == 1) return std::all_of(frames, frames + row_bytes, [](char byte) { return byte == 0; });
  return std::memcmp(frames, frames + row_bytes, static_cast<size_t>((length - 1) * row_bytes)) == 0;
}

/// Leaves the features of those utterances of which the encoder leaves at least one row and which change in time; the
/// others have no translation but an empty one. Targets, which decoding does not need, stay as they were. Returns which
/// utterances were kept and counts the others.
std::vector<size_t> leave_out_empty(const SpeechModel& model, Batch& batch, DecodeReport& report) {
  std::vector<size_t> kept;
  char *from = batch.features.as<char>(), *to = from;
  std::vector<int64_t> lengths;
  std::vector<int32_t> utterances;
  for (size_t i = 0; i < batch.frame_lengths.size(); ++i) {
    const int64_t length = batch.frame_lengths[i], row_bytes = batch.bins * size_of(batch.dtype);
    const int64_t bytes = length * row_bytes;
    if (model.encoder().out_length(length) == 0) {
      ++report.empty;
    } else if (is_unchanging(from, length, row_bytes)) {
      ++report.unchanging;
    } else {
      kept.push_back(i);
      lengths.push_back(length);
      utterances.push_back(batch.utterances[i]);
      if (to != from) std::memmove(to, from, static_cast<size_t>(bytes));
      to += bytes;
    }
    from += bytes;
  }
  batch.frame_lengths = std::move(lengths);
  batch.utterances = std::move(utterances);
  return kept;
}

void check_fit(const LoadedModel& model, const Corpus& corpus) {
  if (corpus.feature_hash() != model.info.feature_hash) {
    throw DataError(corpus.path() + ": its features (" + corpus.feature_hash() + ") are not those of " + model.path +
                    " (" + model.info.feature_hash + "); prepare it with the same feature options");
  }
  if (corpus.features().frame_width() != model.options.model.features) {
    throw DataError(corpus.path() + ": has " + std::to_string(corpus.features().frame_width()) + " feature bins, " +
                    model.path + " needs " + std::to_string(model.options.model.features));
  }
  if (corpus.target_tokenizer().hash() != model.target.hash()) {
    throw DataError(corpus.path() + ": its target tokenizer (" + corpus.target_tokenizer().hash() +
                    ") is not that of " + model.path + " (" + model.target.hash() +
                    "); is it the corpus of another model?");
  }
}

std::string without_eos(const Tokenizer& tokenizer, const Hypothesis& h) {
  std::vector<int32_t> tokens = h.tokens;
  if (!tokens.empty() && tokens.back() == Tokenizer::kEos) tokens.pop_back();
  return tokenizer.decode(tokens);
}

}  // namespace

LoadedModel load_model(const std::string& path, const std::string& device, int64_t threads,
                       const std::vector<std::string>& overrides) {
  const std::string file = find_model(path);
  ModelInfo info = read_model_info(file);
  RunOptions options;
  Config::from_text(info.config_yaml, file, overrides).read(options);
  const Context ctx = make_context(device.empty() ? "auto" : device, threads > 0 ? threads : 0);
  Tokenizer target = Tokenizer::from_blob(info.target_tokenizer, file);
  int64_t ctc_vocabulary = 0;
  if (options.ctc_weight > 0) {
    ctc_vocabulary =
        info.source_tokenizer.empty() ? target.size() : Tokenizer::from_blob(info.source_tokenizer, file).size();
  }
  auto task = std::make_unique<SpeechTask>(ctx, options, target.size(), ctc_vocabulary, false);
  read_model_weights(file, task->store());
  return {file, std::move(info), options, std::move(target), std::move(task)};
}

DecodeReport decode_split(LoadedModel& model, Corpus& corpus, const std::string& split_name) {
  check_fit(model, corpus);
  const SignalGuard guard;
  const auto split = corpus.split(split_name);
  const DataOptions& data = model.options.data;
  const BatchPlan plan = BatchPlan::for_evaluation(split, data.batches);
  SpeechTask& task = *model.task;
  const Context& ctx = task.ctx();
  const Normaliser normaliser = make_normaliser(data.cmvn, model.info.statistics, model.path);
  BatchContents contents = evaluation_contents(corpus, normaliser, task.compute_type());
  contents.pool = HostPool::make(ctx, feature_bytes(plan, data.batches, contents.dtype));
  BatchLoader loader(plan, contents, {}, {data.loader_threads, data.prefetch});
  DecodeReport report;
  for (int64_t i = 0; i < split->size(); ++i) report.lines.push_back({std::string(split->id(i)), "", 0});
  for (int64_t number = 0; number < plan.batches(); ++number) {
    Batch batch = *loader.next();
    const std::vector<int32_t> rows = batch.utterances;
    const std::vector<size_t> kept = leave_out_empty(task.model(), batch, report);
    if (kept.empty()) continue;
    ctx.allocator().set_hint("decoding " + std::to_string(kept.size()) + " utterances with beam " +
                             std::to_string(model.options.decode.beam) +
                             ": lower data.batches.max_frames or decode.beam");
    ctx.allocator().reset_peaks();
    ctx.synchronize();
    const auto begin = Clock::now();
    Tape tape(ctx, false);
    Pass pass{tape, task.tables(), false, 0};
    const Tensor features = task.features_to_device(batch);
    const Segments frames(ctx, batch.frame_lengths, batch.utterances);
    const SpeechModel::Encoded encoded = task.model().encode(pass, features, frames);
    SearchMemory memory;
    const auto hypotheses = beam_search(task.model().decoder(), pass, encoded.prompt, encoded.segments,
                                        batch.frame_lengths, model.options.decode, {}, &memory, stop_requested);
    ctx.synchronize();
    report.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    report.frames += batch.frames();
    for (size_t i = 0; i < kept.size(); ++i) {
      if (hypotheses[i].empty())
        throw Error("decoding of '" + std::string(batch.ids[kept[i]]) +
                    "' gave no hypothesis: the model's scores are not numbers");
      DecodedLine& line = report.lines[static_cast<size_t>(rows[kept[i]])];
      line.hypothesis = without_eos(model.target, hypotheses[i].front());
      line.score = hypotheses[i].front().score;
      report.tokens += static_cast<int64_t>(hypotheses[i].front().tokens.size());
    }
    const MemoryUse use = ctx.allocator().use();
    report.mean_memory += static_cast<double>(use.total_peak) / static_cast<double>(plan.batches());
    if (use.total_peak > report.memory.total_peak) report.memory = use;
    report.cache.payload = std::max(report.cache.payload, memory.payload);
    report.cache.payload_unshared = std::max(report.cache.payload_unshared, memory.payload_unshared);
    report.cache.reserved = std::max(report.cache.reserved, memory.reserved);
    stderr_log().live("decoded batch " + std::to_string(number + 1) + " of " + std::to_string(plan.batches()));
  }
  stderr_log().end_live();
  return report;
}

namespace {

/// Text as a field of a table: a model of bytes, or of pieces that fall back to bytes, can write tabs, line breaks and
/// half characters, and ids of JSON may hold them.
std::string as_field(const std::string& text) {
  int64_t replaced = 0;
  std::string field = with_invalid_utf8_replaced(text, replaced);
  for (char& c : field) {
    if (c == '\t' || c == '\n' || c == '\r' || c == '\0') c = ' ';
  }
  return field;
}

}  // namespace

std::string decoded_text(const DecodeReport& report) {
  std::string text = "id\thypothesis\tscore\n";
  char score[32];
  for (const DecodedLine& line : report.lines) {
    std::snprintf(score, sizeof score, "%.6f", line.score);
    text += as_field(line.id) + "\t" + as_field(line.hypothesis) + "\t" + score + "\n";
  }
  return text;
}

void write_decoded(const std::string& path, const DecodeReport& report) {
  write_text_atomic(path, decoded_text(report));
}

}  // namespace tactus
