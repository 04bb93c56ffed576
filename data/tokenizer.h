// Subword tokenizers by SentencePiece (Kudo and Richardson 2018). The model travels as a string inside corpora and
// checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"

namespace tactus {

struct TokenizerOptions {
  int64_t vocab_size = 0;  ///< 0: no such tokenizer
  std::string model = "unigram";
  double character_coverage = 1.0;
  void visit(ConfigVisitor& v);
};

/// Immutable; copies share the model; encode and decode may be called from many threads.
class Tokenizer {
 public:
  static constexpr int32_t kBos = 0, kPad = 1, kEos = 2, kUnk = 3;

  /// Trains on `sentences`; the same input gives the same model on every machine. DataError when there is no text or
  /// the text cannot support that many pieces. `what` names the text in messages.
  static Tokenizer train(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                         const std::string& what);
  /// DataError when the blob is no SentencePiece model or its special ids are not 0 <s>, 1 <pad>, 2 </s>, 3 <unk>.
  static Tokenizer from_blob(std::string blob, const std::string& where);

  /// Ids without <s> and </s>.
  std::vector<int32_t> encode(std::string_view text) const;
  /// Text of the ids; <s>, <pad> and </s> are left out. DataError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;
  std::string piece(int32_t id) const;
  int64_t size() const;
  const std::string& blob() const;
  const std::string& hash() const;  ///< of the blob, 16 hexadecimal digits

 private:
  struct Model;
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

}  // namespace tactus
