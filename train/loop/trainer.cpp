#include "train/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/files/files.h"
#include "core/process/log.h"
#include "core/process/signals.h"
#include "kernels/reduce.h"
#include "train/loop/batch_fit.h"

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

/// The first line in which two resolved configurations differ, "" when there is none. Where a run computes is not part
/// of what it is.
std::string changed_line(const std::string& stored, const std::string& now) {
  const auto lines = [](const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      const size_t key = line.find_first_not_of(' ');
      const auto is = [&](const char* name) {
        return key != std::string::npos && line.compare(key, std::strlen(name), name) == 0;
      };
      if (!is("device:") && !is("threads:") && !is("loader_threads:") && !is("prefetch:")) out.push_back(line);
    }
    return out;
  };
  const std::vector<std::string> a = lines(stored), b = lines(now);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string before = i < a.size() ? a[i] : "", after = i < b.size() ? b[i] : "";
    if (before != after) return "'" + before + "' is now '" + after + "'";
  }
  return "";
}

LoaderOptions loader_options(const DataOptions& data) { return {data.loader_threads, data.prefetch}; }

/// Options with a number where the configuration says `batch: auto`: that of the run which goes on, else a measured
/// one.
RunOptions with_fitted_batches(const RunOptions& options, const std::string& run, const ResumeOptions& resume) {
  if (options.data.batches.batch != "auto") return options;
  std::string stored;
  if (resume.kind == ResumeOptions::Kind::folder) stored = read_model_info(resume.folder + "/model.h5").config_yaml;
  const std::string config = run + "/config.yaml";
  if (resume.kind == ResumeOptions::Kind::automatic && std::filesystem::exists(config)) stored = read_text_file(config);
  if (stored.empty()) return fit_batches(options);
  RunOptions before, now = options;
  Config::from_text(stored, config).read(before);
  now.data.batches.batch = "fixed";
  now.data.batches.max_frames = before.data.batches.max_frames;
  now.data.batches.max_tokens = before.data.batches.max_tokens;
  return now;
}

}  // namespace

Trainer::Trainer(const RunOptions& options, const std::string& run, const ResumeOptions& resume_options)
    : options_(with_fitted_batches(options, run, resume_options)),
      run_(run),
      ctx_(make_context(options.device, options.threads)),
      comm_(Comm::single()),
      data_(TrainData::open(options_.data, static_cast<uint64_t>(options.seed))),
      checkpoints_(run) {
  const DropReport& drops = data_.plan.drops();
  if (drops.dropped() > 0 || !drops.truncated.empty()) note(drops.to_string());
  const CtcTarget ctc = options.ctc_weight > 0 ? ctc_target_from_string(options.ctc_target) : CtcTarget::none;
  const Vocabularies vocabularies = vocabularies_of(options, data_.corpus);
  options_.threads =
      ctx_.threads();  // bitwise repeatability on the CPU holds for one thread count: keep it with the run
  options_.device = to_string(ctx_.device());
  task_ = std::make_unique<SpeechTask>(ctx_, options_, vocabularies.target, vocabularies.ctc, true);
  optimiser_ = std::make_unique<Optimiser>(options_.optimiser, task_->store(), total_updates());
  runner_ = std::make_unique<StepRunner>(*task_, *optimiser_);
  info_.config_yaml = dump_yaml(options_);
  info_.feature_hash = data_.corpus.feature_hash();
  info_.statistics = data_.statistics;
  info_.target_tokenizer = data_.corpus.target_tokenizer().blob();
  if (ctc == CtcTarget::source) info_.source_tokenizer = data_.corpus.source_tokenizer()->blob();
  info_.task = options_.task;
  info_.dtype = to_string(task_->compute_type());
  state_.corpus_fingerprint = data_.plan.fingerprint();
  state_.threads = ctx_.threads();
  resume(resume_options);
  std::filesystem::create_directories(run_);
  write_text_atomic(run_ + "/config.yaml", info_.config_yaml);
  log_ = std::make_unique<RunLog>(run_ + "/log.jsonl", state_);
  pool_ = HostPool::make(ctx_, std::max(feature_bytes(data_.plan, options_.data.batches, task_->compute_type()),
                                        feature_bytes(data_.valid_plan, options_.data.batches, task_->compute_type())));
  BatchContents contents = evaluation_contents(data_.corpus, data_.normaliser, task_->compute_type());
  contents.augment = options_.data.specaugment;
  contents.ctc = ctc;
  contents.pool = pool_;
  loader_ = std::make_unique<BatchLoader>(data_.plan, contents, LoaderPosition{state_.epoch, state_.next_batch},
                                          loader_options(options_.data));
}

Trainer::~Trainer() = default;

std::string Trainer::folder_to_resume(const ResumeOptions& r) const {
  if (r.kind == ResumeOptions::Kind::folder) return r.folder;
  if (r.kind == ResumeOptions::Kind::none) {
    if (!checkpoints_.updates().empty())
      throw ConfigError(run_ + ": already holds checkpoints; use --resume auto, or another --run folder");
    return "";
  }
  if (const auto newest = checkpoints_.newest()) return checkpoints_.path(*newest);
  if (!checkpoints_.updates().empty())
    throw DataError(run_ + ": none of its checkpoints can be resumed from; use another --run folder");
  return "";
}

void Trainer::resume(const ResumeOptions& r) {
  checkpoints_.recover();
  const std::string folder = folder_to_resume(r);
  if (folder.empty()) return task_->store().initialise(static_cast<uint64_t>(options_.seed));
  TrainState loaded = load_checkpoint(folder, task_->store(), *optimiser_);
  if (loaded.corpus_fingerprint != state_.corpus_fingerprint) {
    throw DataError(options_.data.corpus + ": is not the corpus that " + folder +
                    " was trained on; use another --run folder");
  }
  const ModelInfo stored = read_model_info(folder + "/model.h5");
  if (stored.target_tokenizer != info_.target_tokenizer)
    throw DataError(options_.data.corpus + ": its target tokenizer differs from that of " + folder);
  if (!info_.source_tokenizer.empty() && stored.source_tokenizer != info_.source_tokenizer)
    throw DataError(options_.data.corpus + ": its source tokenizer differs from that of " + folder);
  if (const std::string change = changed_line(stored.config_yaml, info_.config_yaml); !change.empty()) {
    if (r.same_config) {
      throw ConfigError(run_ + ": holds a run of another configuration (" + change +
                        "); remove it or use another run folder");
    }
    warn("resuming " + folder + " under another configuration: " + change);
  }
  if (loaded.threads != state_.threads && ctx_.device() == Device::cpu) {
    warn("resuming with " + std::to_string(state_.threads) + " threads a run that had " +
         std::to_string(loaded.threads) + ": results will not be bit for bit the same");
  }
  if (r.kind == ResumeOptions::Kind::folder) {
    const std::vector<int64_t> there = checkpoints_.updates();
    if (!there.empty() && there.back() > loaded.update) {
      throw ConfigError(run_ + ": holds checkpoints of updates after " + std::to_string(loaded.update) + ", where " +
                        folder + " stands; use another --run folder");
    }
    // Best checkpoints of another run folder are not here to be averaged or decoded.
    std::erase_if(loaded.best,
                  [&](const ScoredCheckpoint& b) { return !std::filesystem::exists(checkpoints_.path(b.update)); });
  }
  state_ = std::move(loaded);
  state_.threads = ctx_.threads();
  if (std::filesystem::exists(checkpoints_.path(state_.update))) saved_update_ = state_.update;
  note("resumed from " + folder);
}

void Trainer::update() {
  bool epoch_ended = false;
  for (int64_t i = 0; i < options_.train.accumulate && !epoch_ended; ++i) {
    Batch batch = *loader_->next();
    epoch_ended = batch.index + 1 == data_.plan.batches();
    const uint64_t key = batch_key(options_.seed, batch);
    runner_->add(std::move(batch), key);
  }
  comm_->all_reduce_sum(task_->store().flat_grad());
  const double tokens = comm_->all_reduce_sum(static_cast<double>(runner_->tokens()));
  finish_update();  // a skipped update has no number, so this one's is known only now
  const LoaderPosition position = loader_->position();
  state_.epoch = position.epoch;
  state_.next_batch = position.index;
  runner_->launch(state_.update + 1, tokens);
}

void Trainer::finish_update() {
  if (!runner_->pending()) return;
  const StepRunner::Result r = runner_->finish();
  if (!r.finite()) return skip_update(r.loss_finite() ? "gradient is not finite" : "loss is not finite", r.ids);
  ++state_.update;
  ++updates_done_;
  state_.skipped_in_row = 0;
  last_rate_ = r.rate;
  last_norm_ = r.norm;
  LogSums& total = state_.sums;
  total.loss += r.sums[kSumLoss], total.nll += r.sums[kSumNll], total.ctc += r.sums[kSumCtc], total.norm += r.norm,
      total.correct += r.sums[kSumCorrect];
  total.tokens += r.tokens, total.frames += r.frames, total.updates += 1, total.ctc_infeasible += r.ctc_infeasible;
  state_.frames += r.frames;
  frames_done_ += r.frames;
  line_frames_ += r.frames;
  if (state_.update % options_.train.log_every == 0) log_line();
}

bool Trainer::result_needed() const {
  const LoopOptions& t = options_.train;
  const int64_t next = state_.update + 1;
  const bool validates = t.validate_every > 0 ? next % t.validate_every == 0 : state_.next_batch == 0;
  const bool saves = t.save_every > 0 && next % t.save_every == 0;
  const bool ends = next >= t.max_updates || state_.next_batch == 0;
  return next % t.log_every == 0 || validates || saves || ends || stop_requested();
}

void Trainer::skip_update(const std::string& reason, const std::vector<std::string>& ids) {
  ++state_.skipped;
  ++state_.skipped_in_row;
  log_->skipped_line(state_, reason, ids);
  warn("update " + std::to_string(state_.update + 1) + " skipped: " + reason + "; first utterance " + ids.front());
  if (state_.skipped_in_row < options_.train.max_skipped) return;
  fail_diverged(std::to_string(state_.skipped_in_row) + " updates in a row were not finite (" + reason + " at update " +
                std::to_string(state_.update + 1) + ", utterances " + ids.front() + ", ...)");
}

void Trainer::fail_diverged(const std::string& what) const {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.3g", scheduled_rate(options_.optimiser, total_updates(), state_.update));
  throw Error("training diverged: " + what + "; the learning rate is " + rate + "; " +
              (saved_update_ > 0 ? "checkpoints up to update " + std::to_string(saved_update_) + " are kept"
                                 : std::string("no checkpoint was written")) +
              "; lower optimiser.learning_rate or raise optimiser.warmup_updates");
}

int64_t Trainer::total_updates() const {
  const LoopOptions& t = options_.train;
  if (t.max_epochs == 0) return t.max_updates;
  return std::min(t.max_updates, t.max_epochs * ((data_.plan.batches() + t.accumulate - 1) / t.accumulate));
}

bool Trainer::finished() const {
  const LoopOptions& t = options_.train;
  return state_.update >= t.max_updates ||
         (t.max_epochs > 0 && state_.epoch >= t.max_epochs && state_.next_batch == 0) ||
         (t.patience > 0 && state_.validations_without_gain >= t.patience);
}

double Trainer::seconds() const { return earlier_seconds_ + now() - start_seconds_; }

TrainResult Trainer::run() {
  const SignalGuard guard;
  start_seconds_ = line_seconds_ = now();
  earlier_seconds_ = state_.seconds;
  after_update();
  while (!finished() && !stop_requested()) {
    update();
    if (result_needed()) finish_update();
    live_line();
    if (!runner_->pending()) after_update();
  }
  finish_update();
  stderr_log().end_live();
  if (finished() && state_.validated_update != state_.update) validate_and_save();
  TrainResult result;
  result.stopped = !finished() || state_.validated_update != state_.update;
  if (result.stopped) save();
  ctx_.synchronize();
  if (!state_.best.empty()) {
    result.best_metric = state_.best.front().metric;
    result.best_update = state_.best.front().update;
    result.best_checkpoint = checkpoints_.path(result.best_update);
  }
  result.updates = state_.update;
  result.epochs = state_.epoch;
  result.seconds = seconds();
  result.frames_per_second = static_cast<double>(state_.frames) / std::max(result.seconds, 1e-9);
  result.memory = ctx_.allocator().use();
  return result;
}

void Trainer::after_update() {
  const LoopOptions& t = options_.train;
  const bool due = t.validate_every > 0 ? state_.update % t.validate_every == 0 : state_.next_batch == 0;
  if (due && state_.update != state_.validated_update) {
    validate_and_save();
  } else if (t.save_every > 0 && state_.update % t.save_every == 0 && state_.update > 0 &&
             state_.update != saved_update_) {
    save();
  }
}

std::optional<Trainer::Validation> Trainer::validate() {
  double nll = 0, correct = 0, tokens = 0;
  // No augmentation, and CTC is not part of the validation loss.
  BatchContents contents = evaluation_contents(data_.corpus, data_.normaliser, task_->compute_type());
  contents.pool = pool_;
  BatchLoader loader(data_.valid_plan, contents, {}, loader_options(options_.data));
  while (const std::optional<Batch> batch = loader.next()) {
    if (stop_requested()) return std::nullopt;
    Tape tape(ctx_, false);
    const SpeechLoss loss = task_->loss(tape, task_->to_device(*batch), false, 0);
    nll += scalar(ctx_, loss.nll);
    correct += count_correct(ctx_, loss.correct);
    tokens += static_cast<double>(loss.tokens);
  }
  nll = comm_->all_reduce_sum(nll), correct = comm_->all_reduce_sum(correct), tokens = comm_->all_reduce_sum(tokens);
  return Validation{nll / std::max(tokens, 1.0), correct / std::max(tokens, 1.0)};
}

void Trainer::validate_and_save() {
  const std::optional<Validation> measured = validate();
  if (!measured) return;
  const Validation v = *measured;
  if (!std::isfinite(v.nll)) {
    fail_diverged("the validation loss of update " + std::to_string(state_.update) + " is not finite");
  }
  state_.validated_update = state_.update;
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
  // Finite gradients can still throw weights out of their type's range; such weights must not replace good ones.
  const double norm = dispatch(ctx_, task_->compute_type(), [&]<class D, class T>() {
    return squared_norm<D, acc_t<T>>(ctx_, task_->store().flat_size(), task_->store().flat_master().data<acc_t<T>>());
  });
  if (!std::isfinite(norm)) fail_diverged("weights are not finite after update " + std::to_string(state_.update));
  info_.update = state_.update;
  state_.seconds = seconds();
  checkpoints_.save(state_, info_, task_->store(), *optimiser_);
  saved_update_ = state_.update;
  checkpoints_.prune(state_, options_.train.keep_last);
}

void Trainer::log_line() {
  const double t = now(), seconds = t - line_seconds_;
  const Timing timing{this->seconds(), static_cast<double>(line_frames_) / std::max(seconds, 1e-9),
                      ctx_.allocator().use().total_peak};
  log_->train_line(state_, last_rate_, timing);
  state_.sums = {};
  line_seconds_ = t;
  line_frames_ = 0;
}

void Trainer::live_line() const {
  const double elapsed = now() - start_seconds_;
  const double per_update = elapsed / static_cast<double>(std::max<int64_t>(updates_done_, 1));
  const int64_t left = total_updates() - state_.update;
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
