#include "train/report/text_baseline.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace tactus {
namespace {

/// Words and pairs of neighbouring words, as a set.
std::set<std::string> pieces(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::set<std::string> out;
  std::string previous, word;
  while (words >> word) {
    out.insert(word);
    if (!previous.empty()) out.insert(previous + " " + word);
    previous = word;
  }
  return out;
}

double overlap(const std::set<std::string>& a, const std::set<std::string>& b) {
  if (a.empty() || b.empty()) return 0;
  const auto common = std::count_if(a.begin(), a.end(), [&](const std::string& p) { return b.count(p) > 0; });
  return 2.0 * static_cast<double>(common) / static_cast<double>(a.size() + b.size());
}

}  // namespace

std::vector<std::string> nearest_neighbour_translations(const std::vector<std::string_view>& train_source,
                                                        const std::vector<std::string_view>& train_target,
                                                        const std::vector<std::string_view>& queries) {
  std::vector<std::set<std::string>> known;
  for (std::string_view s : train_source) known.push_back(pieces(s));
  std::vector<std::string> out;
  for (std::string_view q : queries) {
    const std::set<std::string> wanted = pieces(q);
    size_t best = 0;
    double best_overlap = -1;
    for (size_t i = 0; i < known.size(); ++i) {
      if (const double o = overlap(wanted, known[i]); o > best_overlap) best = i, best_overlap = o;
    }
    out.push_back(known.empty() ? "" : std::string(train_target[best]));
  }
  return out;
}

}  // namespace tactus
