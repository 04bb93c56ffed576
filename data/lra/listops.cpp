#include "data/lra/listops.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/rng.h"

namespace tactus {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"[MIN", "[MAX", "[MED", "[SM", "]"};

std::string word(uint8_t token) {
  return token < 10 ? std::string(1, static_cast<char>('0' + token)) : std::string(kNames[token - kListOpsMin]);
}

class TreeDrawer {
 public:
  TreeDrawer(const ListOpsOptions& options, uint64_t key) : options_(options), rng_(key) {}

  /// False as soon as the tree is too long: without that, one in a few thousand trees would have a million tokens.
  bool draw(int64_t depth) {
    if (static_cast<int64_t>(tokens.size()) >= options_.max_length) return false;
    if (depth >= options_.max_depth || rng_.below(4) != 0) {
      tokens.push_back(static_cast<uint8_t>(rng_.below(10)));
      return true;
    }
    tokens.push_back(static_cast<uint8_t>(kListOpsMin + rng_.below(4)));
    const int64_t children = 2 + static_cast<int64_t>(rng_.below(static_cast<uint64_t>(options_.max_args - 1)));
    for (int64_t i = 0; i < children; ++i) {
      if (!draw(depth + 1)) return false;
    }
    tokens.push_back(kListOpsClose);
    return true;
  }

  ListOpsTokens tokens;

 private:
  const ListOpsOptions& options_;
  Rng rng_;
};

int apply(uint8_t op, std::vector<int> values) {
  switch (op) {
    case kListOpsMin:
      return *std::min_element(values.begin(), values.end());
    case kListOpsMax:
      return *std::max_element(values.begin(), values.end());
    case kListOpsSum:
      return std::accumulate(values.begin(), values.end(), 0) % 10;
    default:
      std::sort(values.begin(), values.end());
      const size_t n = values.size();
      return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  }
}

/// Number of arguments of the operator at each position.
std::vector<int> argument_counts(std::span<const uint8_t> tokens) {
  std::vector<int> counts(tokens.size());
  std::vector<size_t> open;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == kListOpsClose) {
      open.pop_back();
      continue;
    }
    if (!open.empty()) ++counts[open.back()];
    if (tokens[i] >= kListOpsMin) open.push_back(i);
  }
  return counts;
}

}  // namespace

void ListOpsOptions::visit(ConfigVisitor& v) {
  constexpr double kMost = 1e9;
  v.field("train", train, {.doc = "Trees of basic_train.tsv", .min = 0, .max = kMost});
  v.field("valid", valid, {.doc = "Trees of basic_val.tsv", .min = 0, .max = kMost});
  v.field("test", test, {.doc = "Trees of basic_test.tsv", .min = 0, .max = kMost});
  v.field("min_length", min_length, {.doc = "Trees are longer than this", .unit = "tokens", .min = 0, .max = 1000000});
  v.field("max_length", max_length, {.doc = "Trees are shorter than this", .unit = "tokens", .min = 2, .max = 1000000});
  v.field("max_depth", max_depth,
          {.doc = "Depth at which every node is a digit; the root has 1", .min = 1, .max = 1000});
  v.field("max_args", max_args, {.doc = "Most arguments of an operator", .min = 2, .max = 1000});
  v.field("seed", seed, {.doc = "Seed of the set", .min = 0});
  v.field("threads", threads, {.doc = "Threads; 0: all cores. Does not change the result", .min = 0, .max = 4096});
}

std::optional<ListOpsTokens> draw_listops(const ListOpsOptions& options, int64_t candidate) {
  const uint64_t key = mix_key(static_cast<uint64_t>(options.seed), hash_path("listops"));
  TreeDrawer drawer(options, mix_key(key, static_cast<uint64_t>(candidate)));
  if (!drawer.draw(1)) return std::nullopt;
  const auto length = static_cast<int64_t>(drawer.tokens.size());
  if (length <= options.min_length || length >= options.max_length) return std::nullopt;
  return std::move(drawer.tokens);
}

int listops_value(std::span<const uint8_t> tokens) {
  struct Call {
    uint8_t op;
    std::vector<int> values;
  };
  std::vector<Call> calls;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto fail = [&](const std::string& why) {
      throw DataError("ListOps tree: " + why + " at token " + std::to_string(i + 1) + " of " +
                      std::to_string(tokens.size()));
    };
    int value = tokens[i];
    if (tokens[i] > kListOpsClose) fail("no token " + std::to_string(value));
    if (tokens[i] >= kListOpsMin && tokens[i] < kListOpsClose) {
      calls.push_back({tokens[i], {}});
      continue;
    }
    if (tokens[i] == kListOpsClose) {
      if (calls.empty()) fail("a closing bracket without an operator");
      if (calls.back().values.empty()) fail("an operator without arguments");
      value = apply(calls.back().op, std::move(calls.back().values));
      calls.pop_back();
    }
    if (!calls.empty()) {
      calls.back().values.push_back(value);
    } else if (i + 1 == tokens.size()) {
      return value;
    } else {
      fail("more tokens than one tree");
    }
  }
  throw DataError("ListOps tree: " + std::to_string(calls.size()) + " operators are not closed after " +
                  std::to_string(tokens.size()) + " tokens");
}

std::string listops_words(std::span<const uint8_t> tokens) {
  std::string text;
  for (uint8_t token : tokens) text += (text.empty() ? "" : " ") + word(token);
  return text;
}

std::string listops_source(std::span<const uint8_t> tokens) {
  // A tree is written as nested pairs: ((((op arg) arg) ...) ]). So an operator is preceded by one parenthesis for each
  // argument and one for the bracket, and each of them is followed by its closing one.
  const std::vector<int> counts = argument_counts(tokens);
  std::string text;
  int64_t open = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_operator = tokens[i] >= kListOpsMin && tokens[i] < kListOpsClose;
    if (is_operator) {
      for (int k = 0; k <= counts[i]; ++k) text += "( ";
      ++open;
    }
    text += word(tokens[i]) + " ";
    if (tokens[i] == kListOpsClose) {
      text += ") ";
      --open;
    }
    if (!is_operator && open > 0) text += ") ";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

ListOpsTokens parse_listops(std::string_view text, const std::string& where) {
  ListOpsTokens tokens;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == "(" || part == ")") continue;
    const auto name = std::find(kNames.begin(), kNames.end(), part);
    if (part.size() == 1 && part[0] >= '0' && part[0] <= '9') {
      tokens.push_back(static_cast<uint8_t>(part[0] - '0'));
    } else if (name != kNames.end()) {
      tokens.push_back(static_cast<uint8_t>(kListOpsMin + (name - kNames.begin())));
    } else {
      throw DataError(where + ": '" + std::string(part.substr(0, 40)) +
                      "' is no ListOps word; expected digits, [MIN, [MAX, [MED, [SM, ] and parentheses");
    }
  }
  return tokens;
}

}  // namespace tactus
