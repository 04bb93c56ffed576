#include "train/metrics/accuracy.h"

#include "train/metrics/parallel.h"
#include "train/metrics/text.h"

namespace tactus {
namespace {

AccuracyCounts count(const char* metric, bool (*matches)(std::string_view, std::string_view),
                     const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  check_parallel(metric, hypotheses, references);
  AccuracyCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) counts += {matches(hypotheses[i], references[i]) ? 1 : 0, 1};
  return counts;
}

}  // namespace

std::string AccuracyCounts::detail() const {
  return std::to_string(correct) + " of " + std::to_string(total) + " correct";
}

AccuracyCounts& AccuracyCounts::operator+=(const AccuracyCounts& other) {
  correct += other.correct;
  total += other.total;
  return *this;
}

bool exact_match(std::string_view hypothesis, std::string_view reference) {
  return text::split_words(hypothesis) == text::split_words(reference);
}

bool first_token_match(std::string_view hypothesis, std::string_view reference) {
  const auto hyp = text::split_words(hypothesis), ref = text::split_words(reference);
  if (hyp.empty() || ref.empty()) return hyp.empty() == ref.empty();
  return hyp.front() == ref.front();
}

AccuracyCounts exact_match_accuracy(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::string>& references) {
  return count("accuracy", exact_match, hypotheses, references);
}

AccuracyCounts first_token_accuracy(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::string>& references) {
  return count("first_token_accuracy", first_token_match, hypotheses, references);
}

}  // namespace tactus
