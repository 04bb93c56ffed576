#include "core/error.h"

#include <algorithm>
#include <vector>

namespace tactus {
namespace {

int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& word, const std::string* candidates, int count) {
  std::string best;
  int best_distance = static_cast<int>(word.size()) / 2 + 1;
  for (int i = 0; i < count; ++i) {
    int distance = edit_distance(word, candidates[i]);
    if (distance < best_distance) best = candidates[i], best_distance = distance;
  }
  return best;
}

}  // namespace tactus
