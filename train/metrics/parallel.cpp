#include "train/metrics/parallel.h"

#include "core/error.h"
#include "train/metrics/text.h"

namespace tactus {
namespace {

void check_lines(const std::string& metric, const char* role, const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (text::find_invalid_utf8(lines[i]) == std::string::npos) continue;
    text::check_utf8(lines[i], metric + ": " + role + " line " + std::to_string(i + 1));
  }
}

void check_references(const std::string& metric, size_t segments, const std::vector<std::string>& references) {
  if (references.size() != segments) {
    throw DataError(metric + ": " + std::to_string(segments) + " hypotheses but " + std::to_string(references.size()) +
                    " references; they must be equally many");
  }
  check_lines(metric, "reference", references);
}

void check_hypotheses(const std::string& metric, const std::vector<std::string>& hypotheses) {
  if (hypotheses.empty()) throw DataError(metric + ": nothing to score, there are no hypotheses");
  check_lines(metric, "hypothesis", hypotheses);
}

}  // namespace

void check_parallel(const std::string& metric, const std::vector<std::string>& hypotheses,
                    const std::vector<std::vector<std::string>>& references) {
  if (references.empty()) throw DataError(metric + ": at least one set of references is needed, got none");
  for (const auto& set : references) check_references(metric, hypotheses.size(), set);
  check_hypotheses(metric, hypotheses);
}

void check_parallel(const std::string& metric, const std::vector<std::string>& hypotheses,
                    const std::vector<std::string>& references) {
  check_references(metric, hypotheses.size(), references);
  check_hypotheses(metric, hypotheses);
}

}  // namespace tactus
