#include "train/loop/decoder_run.h"

#include <algorithm>
#include <chrono>

#include "core/files.h"
#include "core/log.h"
#include "core/signals.h"
#include "train/loop/checkpoint.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

/// Features of the utterances that the encoder leaves at least one row of; others have no translation but an empty one.
/// Targets, which decoding does not need, are left as they were.
Batch without_empty(const SpeechModel& model, const Batch& batch, std::vector<size_t>& kept) {
  Batch out = batch;
  out.frame_lengths.clear();
  out.features.clear();
  out.utterances.clear();
  int64_t row = 0;
  for (size_t i = 0; i < batch.frame_lengths.size(); ++i) {
    const int64_t length = batch.frame_lengths[i];
    if (model.encoder().out_length(length) > 0) {
      kept.push_back(i);
      out.frame_lengths.push_back(length);
      out.utterances.push_back(batch.utterances[i]);
      const auto begin = batch.features.begin() + row * batch.bins;
      out.features.insert(out.features.end(), begin, begin + length * batch.bins);
    }
    row += length;
  }
  return out;
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
  const BatchPlan plan = BatchPlan::for_evaluation(*split, model.options.data.batches);
  SpeechTask& task = *model.task;
  const Context& ctx = task.ctx();
  DecodeReport report;
  for (int64_t i = 0; i < split->size(); ++i) report.lines.push_back({std::string(split->id(i)), "", 0});
  for (int64_t number = 0; number < plan.batches(); ++number) {
    const Batch whole = make_batch(split, plan, {}, 0, number);
    std::vector<size_t> kept;
    const Batch batch = without_empty(task.model(), whole, kept);
    report.empty += whole.size() - static_cast<int64_t>(kept.size());
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
        throw Error("decoding of '" + std::string(whole.ids[kept[i]]) +
                    "' gave no hypothesis: the model's scores are not numbers");
      DecodedLine& line = report.lines[static_cast<size_t>(whole.utterances[kept[i]])];
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

std::string decoded_text(const DecodeReport& report) {
  std::string text = "id\thypothesis\tscore\n";
  char score[32];
  for (const DecodedLine& line : report.lines) {
    std::snprintf(score, sizeof score, "%.6f", line.score);
    text += line.id + "\t" + line.hypothesis + "\t" + score + "\n";
  }
  return text;
}

void write_decoded(const std::string& path, const DecodeReport& report) {
  write_text_atomic(path, decoded_text(report));
}

}  // namespace tactus
