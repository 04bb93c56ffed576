// Tokenizers: from text to ids and back. The model travels as a string (`blob`) inside corpora and checkpoints.
//
//   unigram, bpe, char   SentencePiece (Kudo and Richardson 2018), trained here or read from a .model file
//   bytes                id = 4 + byte; nothing to train; exact for any text and for raw bytes
//   words                white-space separated words, most frequent first (ties in byte order), or listed in a file; a
//                        fairseq dict.txt ("word count" lines) keeps its order
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"

namespace tactus {

struct TokenizerOptions {
  std::string model = "none";  ///< none: no such tokenizer; unigram, bpe, char, bytes or words
  int64_t vocab_size = 0;      ///< pieces with the special ones; words: the most that are kept, 0: all
  double character_coverage = 1.0;
  std::string file = {};  ///< an existing model: .model, word list, dict.txt, or a corpus or model file that holds one
  std::string dictionary = {};        ///< with a .model: the fairseq dict.txt that numbers its pieces
  double max_unk_rate = 0.05;         ///< share of unknown tokens in a split beyond which preparation fails
  int64_t training_lines = 10000000;  ///< at most so many lines, spread over the text, train it
  bool enabled() const { return model != "none" || !file.empty(); }
  void visit(ConfigVisitor& v);
};

/// Immutable; copies share the model; encode and decode may be called from many threads.
class Tokenizer {
 public:
  static constexpr int32_t kBos = 0, kPad = 1, kEos = 2, kUnk = 3;
  static constexpr int32_t kSpecials = 4;

  /// Trains on `sentences`; the same input gives the same model on every machine. DataError when there is no text or
  /// the text cannot support that many pieces. `what` names the text in messages.
  static Tokenizer train(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                         const std::string& what);
  /// Reads options.file. `role` ("target" or "source") says which tokenizer to take from a corpus or a model file.
  static Tokenizer load(const TokenizerOptions& options, const std::string& role);
  /// DataError when the blob is no tokenizer or its special ids are not 0 <s>, 1 <pad>, 2 </s>, 3 <unk>.
  static Tokenizer from_blob(std::string blob, const std::string& where);

  /// Ids without <s> and </s>. Blank text has none.
  std::vector<int32_t> encode(std::string_view text) const;
  /// Text of the ids; <s>, <pad> and </s> are left out. DataError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;
  std::string piece(int32_t id) const;
  int64_t size() const;
  /// "unigram", "bpe", "char", "bytes" or "words".
  const std::string& kind() const;
  const std::string& blob() const;
  const std::string& hash() const;  ///< of the blob, 16 hexadecimal digits

  struct Model;  ///< interface of the kinds; defined in data/text/tokenizer_model.h

 private:
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

}  // namespace tactus
