// Words as tokens. Words are what stands between ASCII white space, so that any other character, the line separators
// of Unicode included, may be part of one. The list is kept as text with one word a line: no word needs quoting.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "core/error.h"
#include "data/text/text_lines.h"
#include "data/text/tokenizer_model.h"

namespace tactus {
namespace {

constexpr std::string_view kHeader = "tactus-tokenizer words 1\n";
constexpr std::string_view kSpaces = " \t\n\v\f\r";

/// Calls f with each word.
template <class F>
void for_each_word(std::string_view text, F f) {
  for (size_t at = 0;;) {
    const size_t begin = text.find_first_not_of(kSpaces, at);
    if (begin == std::string_view::npos) return;
    at = std::min(text.find_first_of(kSpaces, begin), text.size());
    f(text.substr(begin, at - begin));
  }
}

struct WordHash {
  using is_transparent = void;
  size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};
template <class Value>
using WordMap = std::unordered_map<std::string, Value, WordHash, std::equal_to<>>;

struct WordsModel : Tokenizer::Model {
  std::vector<std::string> words;
  WordMap<int32_t> id_of;

  WordsModel(std::vector<std::string> list, const std::string& where) : words(std::move(list)) {
    kind = "words";
    blob = kHeader;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string at = where + ": word " + std::to_string(i + 1);
      if (words[i].empty() || words[i].find_first_of(kSpaces) != std::string::npos)
        throw DataError(at + " is empty or holds white space");
      if (!id_of.emplace(words[i], Tokenizer::kSpecials + static_cast<int32_t>(i)).second)
        throw DataError(at + ", '" + words[i] + "', is given twice");
      blob += words[i] + "\n";
    }
    if (words.empty()) throw DataError(where + ": no words");
    hash = text_hash(blob);
  }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for_each_word(text, [&](std::string_view word) {
      const auto found = id_of.find(word);
      ids.push_back(found == id_of.end() ? Tokenizer::kUnk : found->second);
    });
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) text += (text.empty() ? "" : " ") + (id == Tokenizer::kUnk ? "<unk>" : piece(id));
    return text;
  }
  std::string piece(int32_t id) const override { return words[static_cast<size_t>(id - Tokenizer::kSpecials)]; }
  int64_t size() const override { return Tokenizer::kSpecials + static_cast<int64_t>(words.size()); }
};

/// The word of a line "word count [#fairseq:overwrite]"; empty for another line.
std::string dictionary_word(std::string_view line) {
  constexpr std::string_view kOverwrite = " #fairseq:overwrite";
  if (line.ends_with(kOverwrite)) line.remove_suffix(kOverwrite.size());
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0) return "";
  const std::string_view number = line.substr(space + 1);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  const bool good = error == std::errc() && end == number.data() + number.size();
  const std::string_view word = line.substr(0, space);
  return good && word.find_first_of(kSpaces) == std::string_view::npos ? std::string(word) : "";
}

}  // namespace

TokenizerModel train_words(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                           const std::string& what) {
  WordMap<int64_t> counts;
  for (const std::string& sentence : sentences) {
    for_each_word(sentence, [&](std::string_view word) {
      auto found = counts.find(word);
      if (found == counts.end()) found = counts.emplace(std::string(word), 0).first;
      ++found->second;
    });
  }
  if (counts.empty()) throw DataError(what + ": no text to collect words from");
  std::vector<std::pair<std::string, int64_t>> order(counts.begin(), counts.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (options.vocab_size > 0 && static_cast<int64_t>(order.size()) > options.vocab_size - Tokenizer::kSpecials)
    order.resize(static_cast<size_t>(std::max<int64_t>(options.vocab_size - Tokenizer::kSpecials, 1)));
  std::vector<std::string> words;
  for (auto& [word, count] : order) words.push_back(std::move(word));
  return std::make_shared<WordsModel>(std::move(words), what);
}

bool is_fairseq_dictionary(const std::string& path) {
  LineReader reader(path);
  std::string line;
  bool any = false;
  while (reader.next(line)) {
    if (dictionary_word(line).empty()) return false;
    any = true;
  }
  return any;
}

std::vector<std::string> read_fairseq_dictionary(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> words;
  WordMap<int64_t> line_of;
  for (std::string line; reader.next(line);) {
    std::string word = dictionary_word(line);
    if (word.empty()) throw DataError(reader.where() + ": expected 'word count', as in a fairseq dict.txt");
    const auto [other, fresh] = line_of.emplace(word, reader.number());
    if (!fresh)
      throw DataError(reader.where() + ": '" + word + "' stands in line " + std::to_string(other->second) + " already");
    words.push_back(std::move(word));
  }
  if (words.empty()) throw DataError(path + ": no words");
  return words;
}

TokenizerModel words_from_file(const std::string& path) {
  if (is_fairseq_dictionary(path)) return std::make_shared<WordsModel>(read_fairseq_dictionary(path), path);
  std::vector<std::string> words;
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    if (line.empty() || line.find_first_of(kSpaces) != std::string::npos)
      throw DataError(reader.where() + ": expected one word a line, or 'word count' in every line");
    words.push_back(line);
  }
  return std::make_shared<WordsModel>(std::move(words), path);
}

TokenizerModel words_from_blob(std::string blob, const std::string& where) {
  if (!blob.starts_with(kHeader) || !blob.ends_with('\n')) throw DataError(where + ": not a list of words");
  if (first_invalid_utf8(blob) >= 0) throw DataError(where + ": invalid UTF-8 in a list of words");
  std::vector<std::string> words;
  for (size_t at = kHeader.size(); at < blob.size();) {
    const size_t end = blob.find('\n', at);
    words.push_back(blob.substr(at, end - at));
    at = end + 1;
  }
  return std::make_shared<WordsModel>(std::move(words), where);
}

}  // namespace tactus
