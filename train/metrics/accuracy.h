// Accuracy of text outputs that name a class or a whole answer. Text is compared as words: white space at the ends and
// its amount between words do not count, case and punctuation do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tactus {

struct AccuracyCounts {
  int64_t correct = 0;
  int64_t total = 0;

  double fraction() const { return total > 0 ? static_cast<double>(correct) / static_cast<double>(total) : 0.0; }
  std::string detail() const;  ///< "17 of 20 correct"

  AccuracyCounts& operator+=(const AccuracyCounts& other);
};

/// All words equal; two empty texts are.
bool exact_match(std::string_view hypothesis, std::string_view reference);
/// First words equal, whatever follows: for outputs that start with a label ("<intent> slot slot ..."). An empty text
/// matches only an empty one.
bool first_token_match(std::string_view hypothesis, std::string_view reference);

/// Throw DataError when there is no segment, the numbers of lines differ, or a line is not UTF-8.
AccuracyCounts exact_match_accuracy(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::string>& references);
AccuracyCounts first_token_accuracy(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::string>& references);

inline constexpr const char* kExactMatchSignature = "nrefs:1|case:mixed|match:exact|version:tactus";
inline constexpr const char* kFirstTokenSignature = "nrefs:1|case:mixed|match:first_token|version:tactus";

}  // namespace tactus
