#include "data/prepare/prepare_split.h"

#include <omp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unordered_map>

#include "core/error.h"
#include "core/process/log.h"
#include "core/process/signals.h"
#include "core/rng.h"
#include "data/prepare/progress.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

/// Items of a part: enough to keep threads busy, little to do again after an interruption, bounded memory.
constexpr int64_t kAudioItems = 128, kTextItems = 1 << 15;
constexpr size_t kTextBytes = 1 << 26;
/// Difference between an input's n_frames and the computed frames that is taken for rounding.
constexpr int64_t kFrameTolerance = 3;

enum class Empty { stop, drop, keep };

Empty empty_policy(const std::string& name, bool first) {
  if (name == "stop") return Empty::stop;
  if (name == "drop" || (name == "auto" && first)) return Empty::drop;
  return Empty::keep;
}

/// Unknown tokens of one side of the text.
struct Unknown {
  int64_t tokens = 0, items = 0;
  std::string ids;
  void add(const std::string& id, int64_t count) {
    tokens += count;
    if (items++ < static_cast<int64_t>(kNamedIds)) ids += (ids.empty() ? "" : ", ") + id;
  }
};

class SplitWork {
 public:
  SplitWork(const PrepareJob& job, const std::string& name, bool first)
      : job_(job),
        name_(name),
        first_(first),
        empty_(empty_policy(job.options.empty, first)),
        on_error_(on_error_from_string(job.options.on_error)),
        reader_(open_items(job.options.input, name, on_error_)),
        speeds_(first ? job.options.speeds : std::vector<double>{1.0}) {
    check_input();
    const CorpusOptions& corpus = job.writer.encoder().options();
    salt_ = dump_yaml(corpus.features) + std::to_string(static_cast<int>(corpus.store)) +
            job.writer.encoder().target().hash() +
            (job.writer.encoder().source() ? job.writer.encoder().source()->hash() : "") +
            std::to_string(static_cast<int>(empty_)) + job.options.on_error +
            std::to_string(first ? job.options.min_seconds : 0) + " " +
            std::to_string(first ? job.options.max_seconds : 0);
    result_.name = name;
  }
  PreparedSplit run();

 private:
  void check_input() const;
  bool fill(std::vector<Item>& items);
  uint64_t key_of(const std::vector<Item>& items);
  ProcessedItem process(const Item& item) const;
  void leave_out(ProcessedItem& p, const std::string& reason, const std::string& message, bool stops) const;
  void take(const std::vector<Item>& items, std::vector<ProcessedItem>& processed, const PartFrames& frames);
  void finish();
  void check_durations() const;
  void check_unknown(const Unknown& unknown, int64_t tokens, const TokenizerOptions& options, const char* side) const;

  const PrepareJob& job_;
  std::string name_;
  bool first_;
  Empty empty_;
  OnError on_error_;
  std::unique_ptr<ItemReader> reader_;
  std::vector<double> speeds_;
  std::string salt_;
  std::unordered_map<std::string, std::string> file_stamps_;
  PreparedSplit result_;
  Unknown unknown_target_, unknown_source_;
  DropCount disagree_;
  std::vector<Item> waiting_;  // copies of the last item at further speeds
};

void SplitWork::check_input() const {
  const PrepareOptions& o = job_.options;
  const auto& source = job_.writer.encoder().source();
  if (source && !reader_->has_src_text()) {
    throw DataError(
        o.input.path + ": split " + name_ +
        " has no source text (column 'src_text' is missing), which the source tokenizer needs; add it or set "
        "source.model to none");
  }
  if (reader_->binary_source() && source && source->kind() != "bytes")
    throw ConfigError("input.format " + o.input.format + " gives raw bytes; set source.model to bytes");
  if (o.features.kind == "none" && reader_->has_src_text() && !source)
    throw ConfigError("a corpus of text needs a source tokenizer; set source.model");
  if (o.features.kind != "none" && !reader_->has_media())
    throw ConfigError("input.format " + o.input.format + ": split " + name_ +
                      " has no audio or features; set features.kind to none for text");
}

/// The next items, each at every speed; false at the end.
bool SplitWork::fill(std::vector<Item>& items) {
  const auto limit = static_cast<size_t>(job_.extractor != nullptr ? kAudioItems : kTextItems);
  items.clear();
  size_t bytes = 0;
  while (items.size() < limit && bytes < kTextBytes) {
    if (!waiting_.empty()) {
      items.push_back(std::move(waiting_.back()));
      waiting_.pop_back();
      continue;
    }
    Item item;
    if (!reader_->next(item)) break;
    bytes += item.src_text.size() + item.src2_text.size() + item.tgt_text.size();
    for (auto speed = speeds_.rbegin(); speed != speeds_.rend(); ++speed) {
      Item copy = item;
      if (*speed != 1.0) {
        char prefix[32];
        std::snprintf(prefix, sizeof prefix, "sp%g-", *speed);
        copy.id = prefix + item.id;
        copy.media.speed = *speed;
        if (item.n_frames >= 0)
          copy.n_frames = static_cast<int64_t>(std::llround(static_cast<double>(item.n_frames) / *speed));
      }
      waiting_.push_back(std::move(copy));
    }
  }
  return !items.empty();
}

uint64_t SplitWork::key_of(const std::vector<Item>& items) {
  uint64_t key = hash_path(salt_);
  for (const Item& item : items) {
    for (const std::string* text : {&item.id, &item.src_text, &item.src2_text, &item.tgt_text, &item.where})
      key = mix_key(key, hash_path(*text));
    if (item.media.kind == MediaRef::Kind::none) continue;
    std::string& stamp = file_stamps_[item.media.path];
    if (stamp.empty()) {
      struct stat info {};
      const bool there = stat(item.media.path.c_str(), &info) == 0;
      stamp = there ? std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) + " " +
                          std::to_string(info.st_mtim.tv_nsec)
                    : "absent";
    }
    key = mix_key(mix_key(key, hash_path(item.media.encode())), hash_path(stamp));
  }
  // Inputs of one file per item would fill memory with stamps that are never asked for again.
  if (file_stamps_.size() > 100000) file_stamps_.clear();
  return key;
}

void SplitWork::leave_out(ProcessedItem& p, const std::string& reason, const std::string& message, bool stops) const {
  if (stops) throw DataError(message);
  p.reason = reason, p.message = message;
}

ProcessedItem SplitWork::process(const Item& item) const {
  ProcessedItem p;
  const PrepareOptions& o = job_.options;
  const bool text_only = job_.extractor == nullptr;
  if (empty_ != Empty::keep) {
    const bool no_source = text_only && reader_->has_src_text() && !reader_->binary_source() && is_blank(item.src_text);
    if (is_blank(item.tgt_text) || no_source) {
      leave_out(p, no_source ? "empty_source" : "empty_text",
                item.where + (no_source ? ": empty source text" : ": empty text (tgt_text)"), empty_ == Empty::stop);
      return p;
    }
  }
  std::vector<float> frames;
  try {
    if (!text_only) {
      frames = job_.extractor->frames(item.media, item.id);
      const int64_t rows = static_cast<int64_t>(frames.size()) / o.features.frame_width();
      const double seconds = static_cast<double>(rows) / o.features.frames_per_second;
      if (rows == 0 && empty_ != Empty::keep) {
        leave_out(p, "too_short", item.where + ": " + item.media.to_string() + ": less than one frame of audio",
                  empty_ == Empty::stop);
        return p;
      }
      if (first_ && o.min_seconds > 0 && seconds < o.min_seconds) p.reason = "min_seconds";
      if (first_ && o.max_seconds > 0 && seconds > o.max_seconds) p.reason = "max_seconds";
      if (!p.reason.empty()) {
        p.message = item.where + ": " + std::to_string(seconds) + " s";
        return p;
      }
    }
    p.encoded = job_.writer.encoder().encode(item, frames);
  } catch (const DataError& e) {
    const std::string what = e.what();
    leave_out(p, o.features.kind == "stored" ? "bad_features" : "bad_audio",
              what.starts_with(item.where) ? what : item.where + ": " + what, on_error_ == OnError::stop);
    return p;
  }
  auto unknown = [](const std::vector<int32_t>& ids) { return std::count(ids.begin(), ids.end(), Tokenizer::kUnk); };
  p.unknown_target = unknown(p.encoded.tgt_tokens);
  p.unknown_source = unknown(p.encoded.src_tokens) + unknown(p.encoded.src2_tokens);
  return p;
}

void SplitWork::take(const std::vector<Item>& items, std::vector<ProcessedItem>& processed, const PartFrames& frames) {
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const ProcessedItem& p = processed[i];
    ++result_.items;
    if (!p.reason.empty()) {
      count_drop(result_.dropped, p.reason, item.id, p.message);
      continue;
    }
    job_.writer.add(item, p.encoded);
    ++result_.kept;
    result_.frames += p.encoded.frames;
    result_.target_tokens += static_cast<int64_t>(p.encoded.tgt_tokens.size());
    result_.source_tokens += static_cast<int64_t>(p.encoded.src_tokens.size() + p.encoded.src2_tokens.size());
    result_.unknown_tokens += p.unknown_target + p.unknown_source;
    if (p.unknown_target > 0) unknown_target_.add(item.id, p.unknown_target);
    if (p.unknown_source > 0) unknown_source_.add(item.id, p.unknown_source);
    if (item.n_frames >= 0 && job_.options.features.kind == "fbank" &&
        std::abs(p.encoded.frames - item.n_frames) > kFrameTolerance && disagree_.count++ == 0) {
      disagree_.first =
          item.where + " says " + std::to_string(item.n_frames) + ", audio has " + std::to_string(p.encoded.frames);
    }
  }
  job_.writer.add_frames(frames.path, frames.offset, frames.bytes);
}

PreparedSplit SplitWork::run() {
  const auto start = std::chrono::steady_clock::now();
  const auto copies = static_cast<int64_t>(speeds_.size());
  job_.writer.begin_split(
      name_, {reader_->has_src_text(), reader_->has_src2_text(), reader_->binary_source(), reader_->extra_columns()});
  std::vector<Item> items;
  for (int64_t part = 0; fill(items); ++part) {
    const uint64_t key = key_of(items);
    char name[32];
    std::snprintf(name, sizeof name, "-%06lld", static_cast<long long>(part));
    const auto count = static_cast<int64_t>(items.size());
    std::vector<ProcessedItem> processed(items.size());
    PartFrames frames;
    if (job_.parts.load(name_ + name, key, processed, frames)) {
      result_.reused += count;
    } else {
      processed.assign(items.size(), {});
      std::vector<std::exception_ptr> errors(items.size());
#pragma omp parallel for num_threads(job_.threads) schedule(dynamic, 1)
      for (int64_t i = 0; i < count; ++i) {
        try {
          processed[i] = process(items[i]);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      }
      // Which error is reported does not depend on the threads.
      for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
      }
      frames = job_.parts.store(name_ + name, key, processed);
    }
    take(items, processed, frames);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const int64_t total = reader_->total();
    stderr_log().live("prepare " + name_ + ": " +
                      progress_text(result_.items, total < 0 ? -1 : total * copies, seconds.count(), "items"));
    if (stop_requested()) throw Error("prepare: stopped by a signal; the same command goes on from here");
  }
  finish();
  return result_;
}

void SplitWork::finish() {
  merge_drops(result_.dropped, reader_->dropped());
  job_.writer.end_split(
      report_json(result_.items + total(reader_->dropped()), result_.kept, result_.unknown_tokens, result_.dropped));
  result_.items += total(reader_->dropped());
  stderr_log().end_live();
  note("prepare " + result_.to_string());
  if (reader_->replaced_bytes() > 0)
    warn(std::to_string(reader_->replaced_bytes()) + " bytes of " + name_ + " were no UTF-8 and were replaced");
  if (disagree_.count > 0) {
    warn(std::to_string(disagree_.count) + " items of " + name_ + " have another n_frames than their audio (" +
         disagree_.first + "); the audio counts");
  }
  if (result_.kept == 0) throw DataError(job_.options.input.path + ": no usable item in split " + name_);
  check_durations();
  check_unknown(unknown_target_, result_.target_tokens, job_.options.target, "target");
  check_unknown(unknown_source_, result_.source_tokens, job_.options.source, "source");
}

/// Limits in the wrong unit leave hardly anything.
void SplitWork::check_durations() const {
  DropCounts beyond;
  for (const char* limit : {"min_seconds", "max_seconds"}) {
    if (const auto found = result_.dropped.find(limit); found != result_.dropped.end()) beyond.insert(*found);
  }
  if (total(beyond) * 2 <= result_.items) return;
  throw DataError(job_.options.input.path + ": " + std::to_string(total(beyond)) + " of " +
                  std::to_string(result_.items) + " items of " + name_ +
                  " are beyond the limits: " + tactus::to_string(beyond) +
                  "; more than half is too much: check the limits and their unit (seconds)");
}

void SplitWork::check_unknown(const Unknown& unknown, int64_t tokens, const TokenizerOptions& options,
                              const char* side) const {
  if (unknown.tokens == 0) return;
  const std::string text = std::to_string(unknown.tokens) + " of " + std::to_string(tokens) + " " + side +
                           " tokens of " + name_ + " are unknown, in " + std::to_string(unknown.items) + " items (" +
                           unknown.ids + (unknown.items > static_cast<int64_t>(kNamedIds) ? ", ..." : "") + ")";
  if (static_cast<double>(unknown.tokens) > options.max_unk_rate * static_cast<double>(tokens)) {
    throw DataError(text + ", more than " + side + ".max_unk_rate " + std::to_string(options.max_unk_rate) +
                    " allows; is this the right tokenizer for the text?");
  }
  warn(text);
}

}  // namespace

PreparedSplit prepare_split(const PrepareJob& job, const std::string& name, bool first) {
  return SplitWork(job, name, first).run();
}

}  // namespace tactus
