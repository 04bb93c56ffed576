#include "train/search/beam_search.h"

#include <algorithm>
#include <cmath>

namespace tactus {
namespace {

/// A live hypothesis; its place in the vector is its row in the decoder's caches.
struct Live {
  std::vector<int32_t> tokens;
  std::vector<double> scores;
  double total = 0;
  int32_t utterance = 0;
};

struct Candidate {
  double total;
  double score;  // of the new token alone
  int32_t row, token;
};

/// Everything about the search of one batch that lives on the host.
class Search {
 public:
  Search(const SearchOptions& o, const SearchVocabulary& v, int64_t vocabulary,
         const std::vector<int64_t>& source_lengths)
      : options_(o),
        vocabulary_(v),
        width_(std::min<int64_t>(2 * o.beam, vocabulary - 1)),
        finished_(source_lengths.size()) {
    for (size_t u = 0; u < source_lengths.size(); ++u) {
      max_length_.push_back(static_cast<int64_t>(o.max_length_ratio * static_cast<double>(source_lengths[u])) +
                            o.max_length);
      live_.push_back({{}, {}, 0, static_cast<int32_t>(u)});
    }
  }
  const std::vector<Live>& live() const { return live_; }
  int64_t width() const { return width_; }
  int64_t longest() const { return *std::max_element(max_length_.begin(), max_length_.end()); }
  std::vector<std::vector<Hypothesis>>& finished() { return finished_; }
  int64_t max_length(int32_t utterance) const { return max_length_[static_cast<size_t>(utterance)]; }

  /// Takes the best continuations of each row ([rows, width] scores and tokens); returns the parent row of each new
  /// live hypothesis.
  std::vector<int32_t> advance(int64_t step, const std::vector<double>& scores, const std::vector<int32_t>& tokens) {
    std::vector<Live> next;
    std::vector<int32_t> parents;
    for (size_t begin = 0; begin < live_.size();) {
      size_t end = begin;
      while (end < live_.size() && live_[end].utterance == live_[begin].utterance) ++end;
      advance_utterance(step, begin, end, scores, tokens, next, parents);
      begin = end;
    }
    live_ = std::move(next);
    return parents;
  }

 private:
  std::vector<Candidate> candidates(int64_t step, size_t begin, size_t end, const std::vector<double>& scores,
                                    const std::vector<int32_t>& tokens) const {
    const bool last = step >= max_length(live_[begin].utterance);
    std::vector<Candidate> c;
    for (size_t r = begin; r < end; ++r) {
      for (int64_t k = 0; k < width_; ++k) {
        const size_t i = r * static_cast<size_t>(width_) + static_cast<size_t>(k);
        if (tokens[i] < 0 || (last && tokens[i] != vocabulary_.eos)) continue;
        c.push_back({live_[r].total + scores[i], scores[i], static_cast<int32_t>(r), tokens[i]});
      }
    }
    const size_t keep = std::min<size_t>(c.size(), static_cast<size_t>(2 * options_.beam));
    std::partial_sort(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(keep), c.end(),
                      [](const Candidate& a, const Candidate& b) {
                        if (a.total != b.total) return a.total > b.total;
                        return a.row != b.row ? a.row < b.row : a.token < b.token;
                      });
    c.resize(keep);
    return c;
  }

  void advance_utterance(int64_t step, size_t begin, size_t end, const std::vector<double>& scores,
                         const std::vector<int32_t>& tokens, std::vector<Live>& next, std::vector<int32_t>& parents) {
    const int32_t utterance = live_[begin].utterance;
    std::vector<Hypothesis>& done = finished_[static_cast<size_t>(utterance)];
    const std::vector<Candidate> c = candidates(step, begin, end, scores, tokens);
    const size_t beam = static_cast<size_t>(options_.beam);
    for (size_t i = 0; i < c.size() && i < beam && done.size() < beam; ++i) {
      if (c[i].token == vocabulary_.eos) done.push_back(finish(c[i]));
    }
    if (done.size() >= beam || step >= max_length(utterance)) return;
    size_t kept = 0;
    for (const Candidate& x : c) {
      if (x.token == vocabulary_.eos) continue;
      if (kept++ == beam) break;
      next.push_back(extended(x));
      parents.push_back(x.row);
    }
  }

  Live extended(const Candidate& c) const {
    Live l = live_[static_cast<size_t>(c.row)];
    l.tokens.push_back(c.token);
    l.scores.push_back(c.score);
    l.total = c.total;
    return l;
  }
  Hypothesis finish(const Candidate& c) const {
    Live l = extended(c);
    const double length = static_cast<double>(l.tokens.size());
    return {std::move(l.tokens), std::move(l.scores), c.total / std::pow(length, options_.length_penalty)};
  }

  const SearchOptions& options_;
  const SearchVocabulary& vocabulary_;
  int64_t width_;
  std::vector<Live> live_;
  std::vector<std::vector<Hypothesis>> finished_;
  std::vector<int64_t> max_length_;
};

struct Best {
  std::vector<double> scores;
  std::vector<int32_t> tokens;
};

/// The best continuations of each row, on the host.
Best best_of(Pass& pass, const Var& logits, const SearchOptions& o, const SearchVocabulary& v, const Search& search,
             int64_t step) {
  const Context& ctx = pass.ctx();
  // Rows at their last step take eos alone; where utterances end at different lengths, each asks for the width that
  // suits all and the host drops what a finished one may not take. Eos must then be among the candidates, so such steps
  // ask for it explicitly.
  const bool all_last = std::all_of(search.live().begin(), search.live().end(),
                                    [&](const Live& l) { return step >= search.max_length(l.utterance); });
  const int64_t rows = logits.rows(), k = search.width();
  const DType acc = accumulator_of(logits.value().dtype());
  const Tensor values = ctx.empty({rows, k}, acc, MemoryTag::workspace),
               tokens = ctx.empty({rows, k}, DType::i32, MemoryTag::workspace);
  dispatch(ctx, logits.value().dtype(), [&]<class D, class T>() {
    topk_log_softmax<D, T>(ctx, logits.value().mat<const T>(), o.temperature, static_cast<int>(k), v.pad, v.eos,
                           step >= o.min_length || all_last, all_last, values.data<acc_t<T>>(), tokens.data<int32_t>());
  });
  return {ctx.download_real(values), ctx.download<int32_t>(tokens)};
}

/// Rows at their longest length must end now, whatever their best continuations are.
void force_eos(Pass& pass, const Var& logits, const SearchOptions& o, const SearchVocabulary& v, const Search& search,
               int64_t step, Best& best) {
  std::vector<int32_t> rows;
  for (size_t r = 0; r < search.live().size(); ++r) {
    if (step >= search.max_length(search.live()[r].utterance)) rows.push_back(static_cast<int32_t>(r));
  }
  if (rows.empty() || rows.size() == search.live().size()) return;
  const Context& ctx = pass.ctx();
  const DType acc = accumulator_of(logits.value().dtype());
  const Tensor value = ctx.empty({logits.rows(), 1}, acc, MemoryTag::workspace);
  const Tensor token = ctx.empty({logits.rows(), 1}, DType::i32, MemoryTag::workspace);
  dispatch(ctx, logits.value().dtype(), [&]<class D, class T>() {
    topk_log_softmax<D, T>(ctx, logits.value().mat<const T>(), o.temperature, 1, v.pad, v.eos, true, true,
                           value.data<acc_t<T>>(), token.data<int32_t>());
  });
  const std::vector<double> eos_scores = ctx.download_real(value);
  const size_t k = static_cast<size_t>(search.width());
  for (int32_t r : rows) {
    const size_t first = static_cast<size_t>(r) * k;
    std::fill_n(best.tokens.begin() + static_cast<std::ptrdiff_t>(first), k, -1);
    best.tokens[first] = v.eos;
    best.scores[first] = eos_scores[static_cast<size_t>(r)];
  }
}

void note_memory(SearchMemory* memory, const DecoderState& state) {
  if (!memory) return;
  memory->payload = std::max(memory->payload, state.payload());
  memory->payload_unshared = std::max(memory->payload_unshared, state.payload_unshared());
  memory->reserved = std::max(memory->reserved, state.reserved());
}

}  // namespace

void SearchOptions::visit(ConfigVisitor& v) {
  v.field("beam", beam, {.doc = "Hypotheses kept; 1 is greedy decoding", .min = 1, .max = 60});
  v.field("length_penalty", length_penalty,
          {.doc = "Exponent of the length that divides a hypothesis's log-probability", .min = 0});
  v.field("temperature", temperature, {.doc = "Divides the logits", .min = 1e-3});
  v.field("min_length", min_length, {.doc = "Tokens before eos is allowed", .unit = "tokens", .min = 0});
  v.field("max_length_ratio", max_length_ratio,
          {.doc = "Longest output: this times the source length, plus max_length", .min = 0});
  v.field("max_length", max_length, {.doc = "Longest output, eos not counted", .unit = "tokens", .min = 0});
}

std::vector<std::vector<Hypothesis>> beam_search(const PromptDecoder& decoder, Pass& pass, const Var& prompt,
                                                 const Segments& segments, const std::vector<int64_t>& source_lengths,
                                                 const SearchOptions& options, const SearchVocabulary& vocabulary,
                                                 SearchMemory* memory, const std::function<bool()>& stop) {
  if (segments.count() == 0) return {};
  if (static_cast<int64_t>(source_lengths.size()) != segments.count()) {
    throw ShapeError("beam_search: " + std::to_string(source_lengths.size()) + " source lengths for " +
                     std::to_string(segments.count()) + " utterances");
  }
  Search search(options, vocabulary, decoder.vocabulary(), source_lengths);
  DecoderState state = decoder.start(pass, prompt, segments, segments.count() * options.beam, search.longest() + 1);
  std::vector<int32_t> inputs(search.live().size(), vocabulary.start);
  for (int64_t step = 0; !search.live().empty(); ++step) {
    if (stop && stop()) throw Error("decoding stopped by a signal");
    const TokenIndex tokens = TokenIndex::make(pass.ctx(), inputs, decoder.vocabulary());
    const Var logits = decoder.step(pass, tokens, state);
    note_memory(memory, state);
    Best best = best_of(pass, logits, options, vocabulary, search, step);
    force_eos(pass, logits, options, vocabulary, search, step, best);
    const std::vector<int32_t> parents = search.advance(step, best.scores, best.tokens);
    inputs.clear();
    for (const Live& l : search.live()) inputs.push_back(l.tokens.back());
    if (!parents.empty()) decoder.reorder(pass, state, parents);
  }
  for (auto& hypotheses : search.finished()) {
    std::stable_sort(hypotheses.begin(), hypotheses.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  }
  return std::move(search.finished());
}

}  // namespace tactus
