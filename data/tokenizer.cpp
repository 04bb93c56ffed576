#include "data/tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "data/text_lines.h"

namespace tactus {
namespace {

/// Feeds sentences from memory.
class VectorIterator : public sentencepiece::SentenceIterator {
 public:
  explicit VectorIterator(const std::vector<std::string>& sentences) : sentences_(sentences) {}
  bool done() const override { return at_ == sentences_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return sentences_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& sentences_;
  size_t at_ = 0;
};

/// The library's messages begin with a source position and the failed condition in brackets; what is left is one line.
std::string one_line(const sentencepiece::util::Status& status) {
  std::string text = status.ToString();
  if (size_t end = text.rfind("] "); end != std::string::npos) text.erase(0, end + 2);
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return text;
}

std::unordered_map<std::string, std::string> trainer_arguments(const TokenizerOptions& options) {
  return {
      {"vocab_size", std::to_string(options.vocab_size)},
      {"model_type", options.model},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"bos_id", std::to_string(Tokenizer::kBos)},
      {"pad_id", std::to_string(Tokenizer::kPad)},
      {"eos_id", std::to_string(Tokenizer::kEos)},
      {"unk_id", std::to_string(Tokenizer::kUnk)},
      {"max_sentence_length", std::to_string(kMaxLineBytes)},
      // Sums are split by thread: a fixed number keeps the model the same on machines with other numbers of cores.
      {"num_threads", "4"},
      {"minloglevel", "2"},
  };
}

sentencepiece::util::Status train_model(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                                        std::string* blob) {
  VectorIterator iterator(sentences);
  return sentencepiece::SentencePieceTrainer::Train(trainer_arguments(options), &iterator, blob);
}

/// Whether anything is left of the text after the trainer's own normalisation and filters: a model of characters, which
/// needs one pass, then has pieces besides the four special ones.
bool leaves_characters(const std::vector<std::string>& sentences) {
  if (std::all_of(sentences.begin(), sentences.end(), [](const std::string& s) { return is_blank(s); })) return false;
  std::string blob;
  TokenizerOptions characters{.vocab_size = 1000000, .model = "char"};
  if (!train_model(sentences, characters, &blob).ok()) return false;
  return Tokenizer::from_blob(std::move(blob), "characters").size() > 4;
}

}  // namespace

struct Tokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
  std::string blob, hash;
};

void TokenizerOptions::visit(ConfigVisitor& v) {
  v.field("vocab_size", vocab_size,
          {.doc = "Pieces, special ones included; 0: none is trained", .min = 0, .max = 1000000});
  v.field("model", model, {.doc = "Kind of SentencePiece model", .choices = {"unigram", "bpe", "char"}});
  v.field("character_coverage", character_coverage,
          {.doc = "Share of the characters of the text that get a piece", .min = 0.9, .max = 1});
}

Tokenizer Tokenizer::train(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                           const std::string& what) {
  if (options.vocab_size < 8)
    throw ConfigError("tokenizer for " + what + ": vocab_size is " + std::to_string(options.vocab_size) +
                      ", expected 8 or more");
  // The unigram trainer ends the process when nothing is left of the text.
  if (!leaves_characters(sentences)) throw DataError(what + ": no text to train a tokenizer on");
  std::string blob;
  auto status = train_model(sentences, options, &blob);
  if (!status.ok()) {
    throw DataError(what + ": cannot train a tokenizer of " + std::to_string(options.vocab_size) + " pieces (" +
                    one_line(status) + "); choose another vocab_size");
  }
  return from_blob(std::move(blob), what);
}

Tokenizer Tokenizer::from_blob(std::string blob, const std::string& where) {
  auto model = std::make_shared<Model>();
  auto status = blob.empty()
                    ? sentencepiece::util::Status(sentencepiece::util::StatusCode::kInvalidArgument, "it is empty")
                    : model->processor.LoadFromSerializedProto(blob);
  if (!status.ok()) throw DataError(where + ": not a SentencePiece model (" + one_line(status) + ")");
  const auto& p = model->processor;
  if (p.bos_id() != kBos || p.pad_id() != kPad || p.eos_id() != kEos || p.unk_id() != kUnk) {
    throw DataError(where + ": special ids are <s> " + std::to_string(p.bos_id()) + ", <pad> " +
                    std::to_string(p.pad_id()) + ", </s> " + std::to_string(p.eos_id()) + ", <unk> " +
                    std::to_string(p.unk_id()) + "; expected 0, 1, 2, 3");
  }
  model->hash = text_hash(blob);
  model->blob = std::move(blob);
  return Tokenizer(std::move(model));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  auto status = model_->processor.Encode(text, &ids);
  if (!status.ok())
    throw DataError("tokenizer: cannot encode '" + std::string(text.substr(0, 80)) + "': " + one_line(status));
  return {ids.begin(), ids.end()};
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::vector<int> kept;
  for (int32_t id : ids) {
    if (id < 0 || id >= size()) {
      throw DataError("tokenizer: id " + std::to_string(id) + " is outside the vocabulary of " +
                      std::to_string(size()));
    }
    if (id != kBos && id != kPad && id != kEos) kept.push_back(id);
  }
  std::string text;
  auto status = model_->processor.Decode(kept, &text);
  if (!status.ok()) throw DataError("tokenizer: cannot decode: " + one_line(status));
  return text;
}

std::string Tokenizer::piece(int32_t id) const {
  if (id < 0 || id >= size())
    throw DataError("tokenizer: id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(size()));
  return model_->processor.IdToPiece(id);
}

int64_t Tokenizer::size() const { return model_->processor.GetPieceSize(); }
const std::string& Tokenizer::blob() const { return model_->blob; }
const std::string& Tokenizer::hash() const { return model_->hash; }

}  // namespace tactus
