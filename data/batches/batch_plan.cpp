#include "data/batches/batch_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/rng.h"

namespace tactus {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t limit_of(int64_t option) { return option > 0 ? option : kNoLimit; }

void check_most_kept(const DropReport& drops, const std::string& name) {
  if (drops.dropped() * 2 <= drops.total && drops.dropped() < drops.total) return;
  if (drops.total == 0) throw DataError("split " + name + ": has no utterances");
  throw DataError("split " + name + ": " + drops.to_string() +
                  "; more than half is too much: check the limits and their units (frames of 10 ms, tokens)");
}

void check_trainable(const CorpusSplit& split) {
  if (split.has_frames() || split.has_src_tokens()) return;
  throw ConfigError(split.path() + ": split " + split.name() +
                    " has neither frames nor source tokens; prepare it with a source tokenizer");
}

/// Fisher and Yates, spelt out: std::shuffle differs between standard libraries.
void permute(std::span<int32_t> values, Rng rng) {
  for (size_t n = values.size(); n > 1; --n) std::swap(values[n - 1], values[rng.below(n)]);
}

/// A limit and by how much an item is beyond it.
struct Excess {
  const char* key = nullptr;
  int64_t length = 0, limit = 0;
  bool cuttable = true;
};

std::string describe(const std::string& id, const Excess& e) {
  return id + " has " + std::to_string(e.length) + ", " + e.key + " is " + std::to_string(e.limit);
}

/// The key by which an item is too short for training, with its length and the limit; or none.
Excess shortfall(const CorpusSplit& split, const BatchOptions& o, int64_t i) {
  if (split.tgt_tokens().length(i) == 0) return {"empty_target", 0, 1};
  if (split.has_frames()) {
    if (split.frames(i) < o.min_source_frames) return {"min_source_frames", split.frames(i), o.min_source_frames};
    return {};
  }
  const int64_t first = split.src_tokens().length(i);
  const int64_t shorter = split.has_src2_tokens() ? std::min(first, split.src2_tokens().length(i)) : first;
  if (shorter < o.min_source_tokens) return {"min_source_tokens", shorter, o.min_source_tokens};
  return {};
}

/// The same for items that are too long.
Excess excess(const CorpusSplit& split, const BatchOptions& o, int64_t i) {
  const int64_t target = split.tgt_tokens().length(i) + 1;
  const auto beyond = [](const char* key, int64_t length, int64_t limit, bool cuttable = true) {
    return length > limit ? Excess{key, length, limit, cuttable} : Excess{};
  };
  std::array<Excess, 3> checks;
  if (split.has_frames()) {
    checks = {beyond("max_source_frames", split.frames(i), limit_of(o.max_source_frames)),
              beyond("max_target_tokens", target, limit_of(o.max_target_tokens)),
              beyond("max_frames", split.frames(i), o.max_frames)};
  } else {
    const int64_t first = split.src_tokens().length(i);
    const int64_t second = split.has_src2_tokens() ? split.src2_tokens().length(i) : 0;
    const int64_t limit = limit_of(o.max_source_tokens);
    const int64_t cut = std::min(first, limit) + std::min(second, limit);
    checks = {
        beyond("max_tokens", std::max(cut, std::min(target, limit_of(o.max_target_tokens))), o.max_tokens, second == 0),
        beyond("max_source_tokens", std::max(first, second), limit),
        beyond("max_target_tokens", target, limit_of(o.max_target_tokens))};
  }
  for (const Excess& e : checks) {
    if (e.key != nullptr) return e;
  }
  return {};
}

}  // namespace

int64_t DropReport::dropped() const { return tactus::total(reasons); }

std::string DropReport::to_string() const {
  std::string text = std::to_string(dropped()) + " of " + std::to_string(total) + " utterances dropped";
  if (dropped() > 0) text += ": " + tactus::to_string(reasons);
  if (!truncated.empty()) {
    text += "; " + std::to_string(tactus::total(truncated)) + " truncated: " + tactus::to_string(truncated);
  }
  return text;
}

std::vector<int64_t> apportion(const std::vector<double>& weights, int64_t total) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = total;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / sum * static_cast<double>(total);
    shares.push_back(std::max<int64_t>(1, static_cast<int64_t>(std::floor(exact + 1e-9))));
    left -= shares.back();
    remainders.emplace_back(static_cast<double>(shares.back()) - exact, i);
  }
  std::stable_sort(remainders.begin(), remainders.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (size_t k = 0; left > 0; k = (k + 1) % remainders.size(), --left) ++shares[remainders[k].second];
  for (; left < 0; ++left) --*std::max_element(shares.begin(), shares.end());
  return shares;
}

BatchPlan BatchPlan::for_training(std::shared_ptr<const CorpusSplit> split, const BatchOptions& options,
                                  uint64_t seed) {
  std::string name = split->name();
  return for_mixture({{std::move(name), std::move(split), 1}}, options, 1, seed);
}

BatchPlan BatchPlan::for_mixture(std::vector<TrainingPart> parts, const BatchOptions& options, double temperature,
                                 uint64_t seed) {
  BatchPlan plan;
  plan.shuffle_ = true, plan.seed_ = seed;
  if (options.on_long == "truncate") {
    const bool frames = parts.front().split->has_frames();
    plan.source_limit_ = frames ? std::min(limit_of(options.max_source_frames), options.max_frames)
                                : std::min(limit_of(options.max_source_tokens), options.max_tokens);
    plan.target_limit_ = std::min(limit_of(options.max_target_tokens), frames ? kNoLimit : options.max_tokens);
  }
  std::vector<double> weights;
  for (const TrainingPart& part : parts) {
    check_trainable(*part.split);
    plan.add_part(part, options);
    weights.push_back(std::pow(part.weight * static_cast<double>(plan.parts_.back().batches), 1 / temperature));
  }
  const std::vector<int64_t> quotas = apportion(weights, plan.batches());
  for (size_t p = 0; p < plan.parts_.size(); ++p) plan.parts_[p].quota = quotas[p];
  return plan;
}

BatchPlan BatchPlan::for_evaluation(std::shared_ptr<const CorpusSplit> split, const BatchOptions& options) {
  BatchPlan plan;
  plan.add_part({split->name(), split, 1}, options);
  plan.parts_.front().quota = plan.batches();
  return plan;
}

void BatchPlan::add_part(const TrainingPart& part, const BatchOptions& options) {
  const CorpusSplit& split = *part.split;
  if (drops_.total + split.size() > std::numeric_limits<int32_t>::max()) {
    throw ConfigError("corpora of more than 2147483647 utterances cannot be trained on together");
  }
  DropReport report;
  report.total = split.size();
  std::vector<int32_t> items = select(split, options, report);
  if (shuffle_) check_most_kept(report, part.name);
  Part added{part.name, part.split, static_cast<int32_t>(drops_.total), batches(), 0, 0};
  drops_.total += report.total;
  merge_drops(drops_.reasons, report.reasons);
  merge_drops(drops_.truncated, report.truncated);
  arrange(split, options, items);
  pack(split, options, items);
  added.batches = batches() - added.first_batch;
  parts_.push_back(std::move(added));
}

std::vector<int32_t> BatchPlan::select(const CorpusSplit& split, const BatchOptions& options,
                                       DropReport& report) const {
  std::vector<int32_t> kept;
  kept.reserve(static_cast<size_t>(split.size()));
  DropCounts too_long;
  for (int64_t i = 0; i < split.size(); ++i) {
    if (shuffle_) {
      Excess e = shortfall(split, options, i);
      const bool is_short = e.key != nullptr;
      if (!is_short) e = excess(split, options, i);
      if (e.key != nullptr) {
        const bool cut = !is_short && options.on_long == "truncate" && e.cuttable;
        const bool fault = !is_short && options.on_long == "error";
        const std::string id(split.id(i));
        count_drop(fault ? too_long : (cut ? report.truncated : report.reasons), e.key, id, describe(id, e));
        if (!cut) continue;
      }
    }
    kept.push_back(static_cast<int32_t>(i));
  }
  if (!too_long.empty()) {
    throw DataError("split " + split.name() +
                    ": items beyond data.batches limits under on_long: error: " + tactus::to_string(too_long));
  }
  return kept;
}

BatchPlan::Lengths BatchPlan::lengths(const CorpusSplit& split, int64_t i) const {
  const int64_t target = std::min(split.tgt_tokens().length(i) + 1, target_limit_);
  if (split.has_frames()) return {std::min(split.frames(i), source_limit_), target};
  int64_t source = split.has_src_tokens() ? std::min(split.src_tokens().length(i), source_limit_) : 0;
  if (split.has_src2_tokens()) source += std::min(split.src2_tokens().length(i), source_limit_);
  return {source, target};
}

void BatchPlan::arrange(const CorpusSplit& split, const BatchOptions& options, std::vector<int32_t>& items) const {
  Rng rng(mix_key(seed_, hash_path("data.grouping")));
  if (shuffle_ && options.grouping == "random") return permute(items, rng);
  std::vector<std::pair<int64_t, int32_t>> sorted;
  sorted.reserve(items.size());
  for (int32_t i : items) sorted.emplace_back(-lengths(split, i).source, i);
  std::sort(sorted.begin(), sorted.end());
  for (size_t k = 0; k < items.size(); ++k) items[k] = sorted[k].second;
  if (!shuffle_ || options.grouping != "buckets") return;
  const auto buckets = static_cast<size_t>(options.buckets);
  for (size_t b = 0; b < buckets; ++b) {
    const size_t begin = items.size() * b / buckets, end = items.size() * (b + 1) / buckets;
    permute({items.data() + begin, end - begin}, Rng(mix_key(mix_key(seed_, hash_path("data.grouping")), b)));
  }
}

void BatchPlan::pack(const CorpusSplit& split, const BatchOptions& options, const std::vector<int32_t>& items) {
  const int64_t multiple = shuffle_ ? options.multiple_of : 1;
  const bool frames = split.has_frames();
  size_t begin = 0;
  Lengths sum;
  const int64_t limit = frames ? options.max_frames : options.max_tokens;
  const auto counted = [&](const Lengths& l) { return frames ? l.source : std::max(l.source, l.target); };
  const auto full = [&](size_t next, const Lengths& more) {
    if (options.max_utterances > 0 && static_cast<int64_t>(next - begin) >= options.max_utterances) return true;
    return counted({sum.source + more.source, sum.target + more.target}) > limit;
  };
  const auto close = [&](size_t end) {
    Lengths batch;
    for (; begin < end; ++begin) {
      const Lengths one = lengths(split, items[begin]);
      batch.source += one.source, batch.target += one.target;
      longest_item_ = std::max(longest_item_, counted(one));
      items_.push_back(items[begin]);
    }
    sum.source -= batch.source, sum.target -= batch.target;
    begins_.push_back(static_cast<int64_t>(items_.size()));
    costs_.push_back(batch.source + batch.target);
    fullest_batch_ = std::max(fullest_batch_, counted(batch));
    if (largest_ < 0 || costs_.back() > costs_[largest_]) largest_ = batches() - 1;
  };
  for (size_t next = 0; next < items.size(); ++next) {
    const Lengths one = lengths(split, items[next]);
    while (next > begin && full(next, one)) {
      const auto count = static_cast<int64_t>(next - begin);
      close(next - static_cast<size_t>(count >= multiple ? count % multiple : 0));
    }
    sum.source += one.source, sum.target += one.target;
  }
  if (begin < items.size()) close(items.size());
}

size_t BatchPlan::part_of(int64_t number) const {
  size_t p = 0;
  while (number >= parts_[p].first_batch + parts_[p].batches) ++p;
  return p;
}

std::span<const int32_t> BatchPlan::batch(int64_t number) const {
  return {items_.data() + begins_[number], static_cast<size_t>(begins_[number + 1] - begins_[number])};
}

int64_t BatchPlan::source_rows(int64_t number) const {
  int64_t rows = 0;
  for (int32_t i : batch(number)) rows += lengths(*split_of(number), i).source;
  return rows;
}

std::vector<int32_t> BatchPlan::order(int64_t epoch) const {
  std::vector<int32_t> order;
  order.reserve(static_cast<size_t>(batches()));
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    std::vector<int32_t> pass(static_cast<size_t>(part.batches));
    const auto draw_pass = [&](int64_t number) {
      std::iota(pass.begin(), pass.end(), static_cast<int32_t>(part.first_batch));
      const uint64_t key = mix_key(mix_key(seed_, hash_path("data.mix")), p);
      // A part that gives each of its batches once needs no order of its own below that of the epoch.
      if (part.quota != part.batches) permute(pass, Rng(mix_key(key, static_cast<uint64_t>(number))));
    };
    int64_t drawn = -1;
    for (int64_t entry = epoch * part.quota; entry < (epoch + 1) * part.quota; ++entry) {
      if (entry / part.batches != drawn) draw_pass(drawn = entry / part.batches);
      order.push_back(pass[entry % part.batches]);
    }
  }
  if (!shuffle_) return order;
  permute(order, Rng(mix_key(mix_key(seed_, hash_path("data.order")), static_cast<uint64_t>(epoch))));
  if (epoch == 0 && !order.empty()) {
    std::swap(order.front(), *std::max_element(order.begin(), order.end(), [&](int32_t a, int32_t b) {
                return std::pair(costs_[a], -a) < std::pair(costs_[b], -b);
              }));
  }
  return order;
}

std::string BatchPlan::fingerprint() const {
  if (parts_.size() == 1) return parts_.front().split->fingerprint();
  std::string text;
  for (const Part& part : parts_) {
    text += part.name + " " + part.split->fingerprint() + " " + std::to_string(part.quota) + "\n";
  }
  return text_hash(text);
}

}  // namespace tactus
