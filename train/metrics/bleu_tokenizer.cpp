#include "train/metrics/bleu_tokenizer.h"

#include <array>

#include "core/error.h"
#include "train/metrics/text.h"

namespace tactus {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }

// ASCII punctuation that always stands alone: all of it but ' , - and the period, which have rules of their own.
constexpr std::array<bool, 256> kSymbols = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("{|}~[\\]^_`!\"#$%&()*+:;<=>?@/")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

std::string replace_all(std::string s, std::string_view from, std::string_view to) {
  for (size_t at = s.find(from); at != std::string::npos; at = s.find(from, at + to.size())) {
    s.replace(at, from.size(), to);
  }
  return s;
}

// Puts spaces around all symbols.
std::string separate_symbols(std::string_view s) {
  std::string out;
  out.reserve(s.size() * 2);
  for (const char c : s) {
    if (kSymbols[static_cast<unsigned char>(c)]) {
      out.append({' ', c, ' '});
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// The rules below look at pairs of characters, left to right, and a character taken by one pair is not seen by the next
// ("a..." pairs as "a." ".."). They work on bytes: of a longer character only its last (first) byte takes part, which
// is never a digit, period or comma, exactly like the character itself.
template <class First, class Second>
std::string separate_pairs(std::string_view s, First first, Second second, std::string_view before,
                           std::string_view between, std::string_view after) {
  std::string out;
  out.reserve(s.size() * 2);
  size_t i = 0;
  while (i + 1 < s.size()) {
    if (first(s[i]) && second(s[i + 1])) {
      out.append(before).append(1, s[i]).append(between).append(1, s[i + 1]).append(after);
      i += 2;
    } else {
      out.push_back(s[i++]);
    }
  }
  if (i < s.size()) out.push_back(s[i]);
  return out;
}

std::string mteval_13a(std::string_view segment) {
  std::string s = replace_all(std::string(segment), "<skipped>", "");
  s = replace_all(std::move(s), "-\n", "");
  s = replace_all(std::move(s), "\n", " ");
  // In this order, so that "&amp;lt;" ends as "<".
  s = replace_all(std::move(s), "&quot;", "\"");
  s = replace_all(std::move(s), "&amp;", "&");
  s = replace_all(std::move(s), "&lt;", "<");
  s = replace_all(std::move(s), "&gt;", ">");
  s = separate_symbols(" " + s + " ");
  const auto not_digit = [](char c) { return !is_digit(c); };
  const auto is_dash = [](char c) { return c == '-'; };
  s = separate_pairs(s, not_digit, is_period_or_comma, "", " ", " ");
  s = separate_pairs(s, is_period_or_comma, not_digit, " ", " ", "");
  return separate_pairs(s, is_digit, is_dash, "", " ", " ");
}

std::vector<std::string> to_strings(const std::vector<std::string_view>& words) { return {words.begin(), words.end()}; }

}  // namespace

BleuTokenizer bleu_tokenizer(std::string_view name) {
  if (name == "13a") return BleuTokenizer::k13a;
  if (name == "none") return BleuTokenizer::kNone;
  if (name == "char") return BleuTokenizer::kChar;
  throw ConfigError("bleu: unknown tokenizer '" + std::string(name) + "'; known: 13a, none, char");
}

const char* bleu_tokenizer_name(BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return "13a";
    case BleuTokenizer::kNone:
      return "none";
    case BleuTokenizer::kChar:
      return "char";
  }
  throw Error("bleu: tokenizer value out of range");
}

std::vector<std::string> bleu_tokenize(std::string_view segment, BleuTokenizer tokenizer) {
  segment = text::strip_right(segment);
  if (tokenizer == BleuTokenizer::k13a) return to_strings(text::split_words(mteval_13a(segment)));
  if (tokenizer == BleuTokenizer::kNone) return to_strings(text::split_words(segment));
  std::vector<std::string> tokens;
  for (const char32_t c : text::decode_utf8(segment)) {
    if (!text::is_space(c)) text::append_utf8(tokens.emplace_back(), c);
  }
  return tokens;
}

}  // namespace tactus
