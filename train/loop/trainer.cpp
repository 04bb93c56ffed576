#include "train/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "core/files.h"
#include "core/log.h"
#include "core/signals.h"
#include "train/loop/state_file.h"

namespace tactus {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Dropout key of one batch: the same however a run got there.
uint64_t batch_key(int64_t seed, const Batch& b) {
  return mix_key(mix_key(static_cast<uint64_t>(seed), static_cast<uint64_t>(b.epoch)), static_cast<uint64_t>(b.index));
}

double scalar(const Context& ctx, const Tensor& t) { return t.defined() ? ctx.download_real(t).front() : 0.0; }

double count_correct(const Context& ctx, const Tensor& correct) {
  double n = 0;
  for (int32_t c : ctx.download<int32_t>(correct)) n += c;
  return n;
}

std::vector<std::string> ids_of(const Batch& b) { return {b.ids.begin(), b.ids.end()}; }

}  // namespace

Trainer::Trainer(const RunOptions& options, const std::string& run, const ResumeOptions& resume_options)
    : options_(options),
      run_(run),
      ctx_(make_context(options.device, options.threads)),
      comm_(Comm::single()),
      corpus_(Corpus::open(options.data.corpus)),
      train_split_(corpus_.split(options.data.train)),
      valid_split_(corpus_.split(options.data.valid)),
      plan_(BatchPlan::for_training(*train_split_, options.data.batches, static_cast<uint64_t>(options.seed))),
      valid_plan_(BatchPlan::for_evaluation(*valid_split_, options.data.batches)),
      checkpoints_(run) {
  if (plan_.drops().dropped() > 0) note(plan_.drops().to_string());
  contents_.augment = options.data.specaugment;
  if (options.ctc_weight > 0) contents_.ctc = ctc_target_from_string(options.ctc_target);
  const bool source_ctc = contents_.ctc == CtcTarget::source;
  if (source_ctc && !corpus_.source_tokenizer()) {
    throw ConfigError(
        "ctc_target: source needs a corpus with a source tokenizer; prepare it with one, or use ctc_target: target");
  }
  const int64_t vocabulary = corpus_.target_tokenizer().size();
  const int64_t ctc_vocabulary = contents_.ctc == CtcTarget::none ? 0
                                 : source_ctc                     ? corpus_.source_tokenizer()->size()
                                                                  : vocabulary;
  options_.threads =
      ctx_.threads();  // bitwise repeatability on the CPU holds for one thread count: keep it with the run
  options_.device = to_string(ctx_.device());
  task_ = std::make_unique<SpeechTask>(ctx_, options_, vocabulary, ctc_vocabulary, true);
  optimiser_ = std::make_unique<Optimiser>(options_.optimiser, task_->store());
  info_.config_yaml = dump_yaml(options_);
  info_.feature_hash = corpus_.feature_hash();
  info_.target_tokenizer = corpus_.target_tokenizer().blob();
  if (source_ctc) info_.source_tokenizer = corpus_.source_tokenizer()->blob();
  info_.task = options_.task;
  info_.dtype = to_string(task_->compute_type());
  state_.corpus_fingerprint = train_split_->fingerprint();
  state_.threads = ctx_.threads();
  resume(resume_options);
  std::filesystem::create_directories(run_);
  write_text_atomic(run_ + "/config.yaml", info_.config_yaml);
  log_ = std::make_unique<RunLog>(run_ + "/log.jsonl", state_.update);
  loader_ =
      std::make_unique<BatchLoader>(train_split_, plan_, contents_, LoaderPosition{state_.epoch, state_.next_batch});
}

Trainer::~Trainer() = default;

void Trainer::resume(const ResumeOptions& r) {
  if (r.kind == ResumeOptions::Kind::none) {
    if (!checkpoints_.updates().empty()) {
      throw ConfigError(run_ + ": already holds checkpoints; use --resume auto, or another --run folder");
    }
  } else if (r.kind == ResumeOptions::Kind::folder) {
    const std::string problem = verify_checkpoint(r.folder, true);
    if (!problem.empty()) throw DataError(problem);
    read_model_weights(r.folder + "/model.h5", task_->store());
    state_ = read_state_file(r.folder + "/state.h5", task_->store(), *optimiser_);
    task_->store().refresh_working_copy();
    return;
  } else {
    checkpoints_.recover();
    if (const auto newest = checkpoints_.newest()) {
      const TrainState loaded = checkpoints_.load(*newest, task_->store(), *optimiser_);
      if (loaded.corpus_fingerprint != state_.corpus_fingerprint) {
        throw DataError(options_.data.corpus + ": is not the corpus that " + run_ +
                        " was trained on; use another --run folder");
      }
      if (read_model_info(checkpoints_.model_path(*newest)).target_tokenizer != info_.target_tokenizer) {
        throw DataError(options_.data.corpus + ": its tokenizer differs from that of the checkpoints in " + run_);
      }
      if (loaded.threads != state_.threads && ctx_.device() == Device::cpu) {
        warn("resuming with " + std::to_string(state_.threads) + " threads a run that had " +
             std::to_string(loaded.threads) + ": results will not be bit for bit the same");
      }
      state_ = loaded;
      state_.threads = ctx_.threads();
      saved_update_ = state_.update;
      note("resumed from " + checkpoints_.path(*newest));
      return;
    }
    if (!checkpoints_.updates().empty())
      throw DataError(run_ + ": none of its checkpoints can be resumed from; use --resume none and another folder");
  }
  task_->store().initialise(static_cast<uint64_t>(options_.seed));
}

void Trainer::add_batch(const Batch& batch, uint64_t key, LogSums& sums) {
  ctx_.allocator().set_hint("batch of " + std::to_string(batch.size()) + " utterances (" +
                            std::string(batch.ids.front()) + ", ...), " + std::to_string(batch.frames()) +
                            " frames: lower data.batches.max_frames");
  const SpeechBatch device = task_->to_device(batch);
  Tape tape(ctx_);
  SpeechLoss loss = task_->loss(tape, device, true, key);
  const Var total = loss.total;
  loss.total = {};
  tape.backward(total);
  sums.loss += scalar(ctx_, total.value());
  sums.nll += scalar(ctx_, loss.nll);
  sums.ctc += scalar(ctx_, loss.ctc);
  sums.correct += count_correct(ctx_, loss.correct);
  sums.tokens += loss.tokens;
  sums.frames += batch.frames();
  sums.ctc_infeasible += loss.ctc_infeasible;
}

bool Trainer::update() {
  task_->store().zero_grad();
  LogSums sums;
  std::vector<std::string> ids;
  bool epoch_ended = false;
  for (int64_t i = 0; i < options_.train.accumulate && !epoch_ended; ++i) {
    const Batch batch = *loader_->next();
    const std::vector<std::string> names = ids_of(batch);
    ids.insert(ids.end(), names.begin(), names.end());
    add_batch(batch, batch_key(options_.seed, batch), sums);
    epoch_ended = batch.index + 1 == plan_.batches();
  }
  const LoaderPosition position = loader_->position();
  state_.epoch = position.epoch;
  state_.next_batch = position.index;
  comm_->all_reduce_sum(task_->store().flat_grad());
  const double tokens = comm_->all_reduce_sum(static_cast<double>(sums.tokens));
  if (!std::isfinite(sums.loss)) {
    skip_update("loss is not finite", ids);
    return epoch_ended;
  }
  const Optimiser::Result r = optimiser_->step(state_.update + 1, tokens);
  if (!r.finite) {
    skip_update("gradient is not finite", ids);
    return epoch_ended;
  }
  ++state_.update;
  ++updates_done_;
  state_.skipped_in_row = 0;
  last_rate_ = r.rate;
  last_norm_ = r.norm;
  LogSums& total = state_.sums;
  total.loss += sums.loss, total.nll += sums.nll, total.ctc += sums.ctc, total.norm += r.norm,
      total.correct += sums.correct;
  total.tokens += sums.tokens, total.frames += sums.frames, total.updates += 1,
      total.ctc_infeasible += sums.ctc_infeasible;
  frames_done_ += sums.frames;
  line_frames_ += sums.frames;
  return epoch_ended;
}

void Trainer::skip_update(const std::string& reason, const std::vector<std::string>& ids) {
  ++state_.skipped;
  ++state_.skipped_in_row;
  log_->skipped_line(state_, reason, ids);
  warn("update " + std::to_string(state_.update + 1) + " skipped: " + reason + "; first utterance " + ids.front());
  if (state_.skipped_in_row < options_.train.max_skipped) return;
  throw Error("training diverged: " + std::to_string(state_.skipped_in_row) + " updates in a row were not finite (" +
              reason + " at update " + std::to_string(state_.update + 1) + ", rate " + std::to_string(last_rate_) +
              ", utterances " + ids.front() + ", ...); checkpoints up to update " +
              std::to_string(std::max<int64_t>(saved_update_, 0)) +
              " are kept; lower optimiser.learning_rate or raise optimiser.warmup_updates");
}

bool Trainer::finished() const {
  const LoopOptions& t = options_.train;
  return state_.update >= t.max_updates ||
         (t.max_epochs > 0 && state_.epoch >= t.max_epochs && state_.next_batch == 0) ||
         (t.patience > 0 && state_.validations_without_gain >= t.patience);
}

TrainResult Trainer::run() {
  const SignalGuard guard;
  start_seconds_ = line_seconds_ = now();
  TrainResult result;
  while (!finished()) {
    const int64_t before = state_.update;
    const bool epoch_ended = update();
    const bool moved = state_.update > before;
    if (moved && state_.update % options_.train.log_every == 0) log_line();
    live_line();
    after_update(epoch_ended && moved);
    if (stop_requested()) {
      save();
      result.stopped = true;
      break;
    }
  }
  stderr_log().end_live();
  if (!result.stopped && saved_update_ != state_.update) validate_and_save();
  ctx_.synchronize();
  if (!state_.best.empty()) {
    result.best_metric = state_.best.front().metric;
    result.best_update = state_.best.front().update;
    result.best_checkpoint = checkpoints_.path(result.best_update);
  }
  result.updates = state_.update;
  result.epochs = state_.epoch;
  result.seconds = now() - start_seconds_;
  result.frames_per_second = static_cast<double>(frames_done_) / std::max(result.seconds, 1e-9);
  result.memory = ctx_.allocator().use();
  return result;
}

void Trainer::after_update(bool epoch_ended) {
  const LoopOptions& t = options_.train;
  const bool due = t.validate_every > 0 ? state_.update % t.validate_every == 0 : epoch_ended;
  if (state_.update == saved_update_) return;
  if (due) {
    validate_and_save();
  } else if (t.save_every > 0 && state_.update % t.save_every == 0) {
    save();
  }
}

Trainer::Validation Trainer::validate() {
  double nll = 0, correct = 0, tokens = 0;
  for (int64_t i = 0; i < valid_plan_.batches(); ++i) {
    BatchContents contents;  // no augmentation, and CTC is not part of the validation loss
    const Batch batch = make_batch(valid_split_, valid_plan_, contents, 0, i);
    Tape tape(ctx_, false);
    const SpeechLoss loss = task_->loss(tape, task_->to_device(batch), false, 0);
    nll += scalar(ctx_, loss.nll);
    correct += count_correct(ctx_, loss.correct);
    tokens += static_cast<double>(loss.tokens);
  }
  nll = comm_->all_reduce_sum(nll), correct = comm_->all_reduce_sum(correct), tokens = comm_->all_reduce_sum(tokens);
  return {nll / std::max(tokens, 1.0), correct / std::max(tokens, 1.0)};
}

void Trainer::validate_and_save() {
  const Validation v = validate();
  const double metric = options_.train.metric == "loss" ? -v.nll : v.accuracy;
  const bool best = state_.best.empty() || metric > state_.best.front().metric;
  state_.validations_without_gain = best ? 0 : state_.validations_without_gain + 1;
  auto& list = state_.best;
  list.push_back({state_.update, metric});
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.metric > b.metric; });
  if (static_cast<int64_t>(list.size()) > options_.train.keep_best)
    list.resize(static_cast<size_t>(options_.train.keep_best));
  log_->valid_line(state_, v.nll, v.accuracy, metric, best);
  char text[160];
  std::snprintf(text, sizeof text, "epoch %lld  update %lld  valid nll %.4f  accuracy %.4f%s",
                static_cast<long long>(state_.epoch), static_cast<long long>(state_.update), v.nll, v.accuracy,
                best ? "  (best)" : "");
  note(text);
  save();
}

void Trainer::save() {
  info_.update = state_.update;
  checkpoints_.save(state_, info_, task_->store(), *optimiser_);
  saved_update_ = state_.update;
  checkpoints_.prune(state_.best, options_.train.keep_last);
}

void Trainer::log_line() {
  const double t = now(), seconds = t - line_seconds_;
  const Timing timing{t - start_seconds_, static_cast<double>(line_frames_) / std::max(seconds, 1e-9),
                      ctx_.allocator().use().total_peak};
  log_->train_line(state_, last_rate_, timing);
  state_.sums = {};
  line_seconds_ = t;
  line_frames_ = 0;
}

void Trainer::live_line() const {
  const double elapsed = now() - start_seconds_;
  const double per_update = elapsed / static_cast<double>(std::max<int64_t>(updates_done_, 1));
  int64_t left = options_.train.max_updates - state_.update;
  if (options_.train.max_epochs > 0) {
    const int64_t per_epoch = (plan_.batches() + options_.train.accumulate - 1) / options_.train.accumulate;
    left = std::min(
        left, (options_.train.max_epochs - state_.epoch) * per_epoch - state_.next_batch / options_.train.accumulate);
  }
  const LogSums& s = state_.sums;
  const double tokens = static_cast<double>(std::max<int64_t>(s.tokens, 1));
  char text[256];
  std::snprintf(text, sizeof text,
                "epoch %lld  update %lld  loss %.3f  lr %.2e  norm %.2f  %.0f frames/s  ETA %.0f s  %.0f MiB",
                static_cast<long long>(state_.epoch + 1), static_cast<long long>(state_.update), s.loss / tokens,
                last_rate_, last_norm_, static_cast<double>(frames_done_) / std::max(elapsed, 1e-9),
                per_update * static_cast<double>(std::max<int64_t>(left, 0)),
                static_cast<double>(ctx_.allocator().use().total_live) / (1 << 20));
  stderr_log().live(text);
}

}  // namespace tactus
