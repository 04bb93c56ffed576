// What a kind of tokenizer has to do; data/tokenizers/ holds one file for each.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"

namespace tactus {

/// Immutable; methods may be called from any thread.
struct Tokenizer::Model {
  virtual ~Model() = default;
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  /// Ids are inside the vocabulary and none is <s>, <pad> or </s>.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  virtual std::string piece(int32_t id) const = 0;
  virtual int64_t size() const = 0;
  std::string kind, blob, hash;
};

using TokenizerModel = std::shared_ptr<Tokenizer::Model>;

/// First bytes of the blobs that are not SentencePiece's own.
constexpr std::string_view kTokenizerMagic = "tactus-tokenizer ";

TokenizerModel train_sentencepiece(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                                   const std::string& what);
/// A .model file with the special ids 0 <s>, 1 <pad>, 2 </s>, 3 <unk> as it is. Any other is renumbered: its own special
/// pieces leave, the rest keeps its order from id 4 on, or takes that of `dictionary`, a fairseq dict.txt (empty: none).
TokenizerModel sentencepiece_from_file(const std::string& path, const std::string& dictionary);
/// A blob of this program: our ids, or renumbered with a head that says so.
TokenizerModel sentencepiece_from_blob(std::string blob, const std::string& where);
TokenizerModel bytes_tokenizer();
TokenizerModel train_words(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                           const std::string& what);
/// A word list, one a line, or a fairseq dict.txt of lines "word count".
TokenizerModel words_from_file(const std::string& path);
TokenizerModel words_from_blob(std::string blob, const std::string& where);

/// Words of a fairseq dict.txt in its order. DataError with the line for anything else, or a word given twice.
std::vector<std::string> read_fairseq_dictionary(const std::string& path);
/// Whether every line of the file is "word count".
bool is_fairseq_dictionary(const std::string& path);

/// The error of an id outside the vocabulary.
[[noreturn]] void id_error(int32_t id, int64_t size);

}  // namespace tactus
