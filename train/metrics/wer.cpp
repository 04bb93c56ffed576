#include "train/metrics/wer.h"

#include <algorithm>
#include <unordered_map>

#include "train/metrics/parallel.h"
#include "train/metrics/text.h"

namespace tactus {
namespace {

// One cell of the alignment table: the counts along the path that leads to it.
struct Cell {
  int64_t hits, substitutions, deletions, insertions;
  int64_t distance() const { return substitutions + deletions + insertions; }
};

std::u32string number_words(const std::vector<std::u32string>& words,
                            std::unordered_map<std::u32string, char32_t>& numbers) {
  std::u32string out;
  for (const auto& word : words) out.push_back(numbers.try_emplace(word, numbers.size()).first->second);
  return out;
}

// Runs of two or more white-space characters act as one space; then only spaces separate.
std::vector<std::u32string> wer_words(std::string_view segment) {
  const std::u32string points = text::decode_utf8(text::strip(segment));
  std::vector<std::u32string> words;
  std::u32string word;
  for (size_t i = 0; i < points.size();) {
    size_t end = i;
    while (end < points.size() && text::is_space(points[end])) ++end;
    const size_t run = end - i;
    if (run == 0 || (run == 1 && points[i] != U' ')) {
      word.push_back(points[i++]);
      continue;
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
    i = end;
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

}  // namespace

double EditCounts::rate() const {
  if (reference_length() == 0) return static_cast<double>(insertions);
  return static_cast<double>(edits()) / static_cast<double>(reference_length());
}

std::string EditCounts::detail(const char* unit) const {
  return std::to_string(substitutions) + " substitutions, " + std::to_string(deletions) + " deletions, " +
         std::to_string(insertions) + " insertions, " + std::to_string(reference_length()) + " reference " + unit;
}

EditCounts& EditCounts::operator+=(const EditCounts& other) {
  hits += other.hits;
  substitutions += other.substitutions;
  deletions += other.deletions;
  insertions += other.insertions;
  return *this;
}

EditCounts count_edits(std::span<const char32_t> ref, std::span<const char32_t> hyp) {
  // Equal ends are matched first: shorter tables, and part of how ties are broken.
  int64_t common = 0;
  while (!ref.empty() && !hyp.empty() && ref.front() == hyp.front()) {
    ref = ref.subspan(1);
    hyp = hyp.subspan(1);
    ++common;
  }
  while (!ref.empty() && !hyp.empty() && ref.back() == hyp.back()) {
    ref = ref.first(ref.size() - 1);
    hyp = hyp.first(hyp.size() - 1);
    ++common;
  }
  // Reading an alignment back from the table's corner picks each cell's predecessor from distances alone: a deletion
  // where one is optimal; else an insertion, but only where dropping the hypothesis's last symbol helped the shorter
  // reference's cell (so no diagonal is passed over for nothing); else the diagonal. So the counts can travel forward
  // with the distances, and two rows are enough.
  std::vector<Cell> row(ref.size() + 1),
      next(ref.size() + 1);  // row j: hypothesis prefix j; column i: reference prefix i
  for (size_t i = 0; i < row.size(); ++i) row[i] = {0, 0, static_cast<int64_t>(i), 0};
  for (size_t j = 1; j <= hyp.size(); ++j) {
    next[0] = {0, 0, 0, static_cast<int64_t>(j)};
    for (size_t i = 1; i < row.size(); ++i) {
      const bool equal = ref[i - 1] == hyp[j - 1];
      const int64_t above = next[i - 1].distance(), left = row[i].distance(), diagonal = row[i - 1].distance();
      const int64_t best = std::min({above + 1, left + 1, diagonal + (equal ? 0 : 1)});
      if (best == above + 1) {
        next[i] = next[i - 1];
        ++next[i].deletions;
      } else if (left == diagonal - 1) {
        next[i] = row[i];
        ++next[i].insertions;
      } else {
        next[i] = row[i - 1];
        ++(equal ? next[i].hits : next[i].substitutions);
      }
    }
    std::swap(row, next);
  }
  const Cell& last = row.back();
  return {last.hits + common, last.substitutions, last.deletions, last.insertions};
}

EditCounts word_edits(std::string_view hypothesis, std::string_view reference) {
  std::unordered_map<std::u32string, char32_t> numbers;
  const std::u32string ref = number_words(wer_words(reference), numbers);
  const std::u32string hyp = number_words(wer_words(hypothesis), numbers);
  return count_edits(ref, hyp);
}

EditCounts character_edits(std::string_view hypothesis, std::string_view reference) {
  return count_edits(text::decode_utf8(text::strip(reference)), text::decode_utf8(text::strip(hypothesis)));
}

EditCounts corpus_word_edits(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  check_parallel("wer", hypotheses, references);
  EditCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) counts += word_edits(hypotheses[i], references[i]);
  return counts;
}

EditCounts corpus_character_edits(const std::vector<std::string>& hypotheses,
                                  const std::vector<std::string>& references) {
  check_parallel("cer", hypotheses, references);
  EditCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) counts += character_edits(hypotheses[i], references[i]);
  return counts;
}

}  // namespace tactus
