// Word and character error rate: the least number of substitutions, deletions and insertions that turn the reference
// into the hypothesis (Levenshtein 1966), summed over the corpus and divided by all reference words (characters).
//
// The text is not normalised: case, punctuation and accents count. Words are what lies between single spaces or runs of
// white space; white space at both ends is dropped. A lone tab or no-break space between letters does not end a word.
// Characters are code points, inner spaces included. All this, and how ties between alignments are broken (which
// decides the split into the three kinds, never their sum), is as in jiwer 4. Only for sequences so long that its
// aligner divides them (roughly 2,000 by 2,000 units in one segment) may the split differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tactus {

struct EditCounts {
  int64_t hits = 0;
  int64_t substitutions = 0;
  int64_t deletions = 0;
  int64_t insertions = 0;

  int64_t edits() const { return substitutions + deletions + insertions; }
  int64_t reference_length() const { return hits + substitutions + deletions; }

  /// edits / reference length as a fraction; may exceed 1. Without any reference word it is the number of insertions (as
  /// if there had been one reference word), so 0 only for an empty hypothesis: noise heard in silence is an error.
  double rate() const;

  /// "3 substitutions, 1 deletions, 0 insertions, 40 reference words"
  std::string detail(const char* unit) const;

  EditCounts& operator+=(const EditCounts& other);
};

/// Best alignment of two sequences of symbols. Time O(n m), memory O(n + m).
EditCounts count_edits(std::span<const char32_t> reference, std::span<const char32_t> hypothesis);

/// One segment. Input must be valid UTF-8.
EditCounts word_edits(std::string_view hypothesis, std::string_view reference);
EditCounts character_edits(std::string_view hypothesis, std::string_view reference);

/// Whole corpora. A segment with an empty reference adds its insertions to the edits and nothing to the length. Throws
/// DataError when there is no segment, the numbers of lines differ, or a line is not UTF-8.
EditCounts corpus_word_edits(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);
EditCounts corpus_character_edits(const std::vector<std::string>& hypotheses,
                                  const std::vector<std::string>& references);

inline constexpr const char* kWerSignature = "nrefs:1|case:mixed|tok:words|norm:none|version:tactus";
inline constexpr const char* kCerSignature = "nrefs:1|case:mixed|tok:chars|norm:none|version:tactus";

}  // namespace tactus
