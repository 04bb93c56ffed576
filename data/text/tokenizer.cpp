#include "data/text/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/h5.h"
#include "data/text/text_lines.h"
#include "data/text/tokenizer_model.h"

namespace tactus {
namespace {

TokenizerModel model_from_blob(std::string blob, const std::string& where) {
  if (blob == bytes_tokenizer()->blob) return bytes_tokenizer();
  if (blob.starts_with(std::string(kTokenizerMagic) + "words")) return words_from_blob(std::move(blob), where);
  return sentencepiece_from_blob(std::move(blob), where);
}

/// The blob inside a corpus (bytes) or a model file (a string).
std::string blob_of_h5(const std::string& path, const std::string& role) {
  const h5::File file = h5::File::open(path);
  const std::string name = "tokenizer/" + role;
  if (!file.exists(name)) throw DataError(path + ": holds no " + role + " tokenizer");
  if (file.shape(name).empty()) return file.read_string(name);
  const std::vector<uint8_t> bytes = file.read<uint8_t>(name);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void TokenizerOptions::visit(ConfigVisitor& v) {
  v.field("model", model,
          {.doc = "unigram, bpe and char are SentencePiece's; none: there is no such tokenizer",
           .choices = {"none", "unigram", "bpe", "char", "bytes", "words"}});
  v.field("vocab_size", vocab_size,
          {.doc = "Pieces, special ones included; words: the most that are kept, 0: all", .min = 0, .max = 10000000});
  v.field("character_coverage", character_coverage,
          {.doc = "Share of the characters of the text that get a piece", .min = 0.9, .max = 1});
  v.field(
      "file", file,
      {.doc = "An existing tokenizer instead of training one: a SentencePiece .model, a word list, a fairseq dict.txt, "
              "or a corpus or model file that holds one"});
  v.field("dictionary", dictionary, {.doc = "With a SentencePiece file: the fairseq dict.txt that numbers its pieces"});
  v.field("max_unk_rate", max_unk_rate,
          {.doc = "Preparation fails when a larger share of a split's tokens is unknown", .min = 0, .max = 1});
  v.field("training_lines", training_lines,
          {.doc = "At most so many lines, spread over the text, train it", .unit = "lines", .min = 1});
}

Tokenizer Tokenizer::train(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                           const std::string& what) {
  if (options.model == "bytes") return Tokenizer(bytes_tokenizer());
  if (options.model == "words") return Tokenizer(train_words(sentences, options, what));
  if (options.model == "none") throw ConfigError("tokenizer for " + what + ": model is none");
  return Tokenizer(train_sentencepiece(sentences, options, what));
}

Tokenizer Tokenizer::from_blob(std::string blob, const std::string& where) {
  return Tokenizer(model_from_blob(std::move(blob), where));
}

Tokenizer Tokenizer::load(const TokenizerOptions& options, const std::string& role) {
  const std::string& path = options.file;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (!options.dictionary.empty() && extension != ".model")
    throw ConfigError(role + ".dictionary numbers the pieces of a SentencePiece .model, which " + path + " is not");
  TokenizerModel model;
  if (extension == ".h5") {
    model = model_from_blob(blob_of_h5(path, role), path);
  } else if (extension == ".model") {
    model = sentencepiece_from_file(path, options.dictionary);
  } else {
    model = words_from_file(path);
  }
  // A file may be given without saying what is in it; what is said must be true.
  if (options.model != "none" && options.model != model->kind) {
    throw ConfigError(path + ": holds a tokenizer of kind " + model->kind + ", but " + role + ".model is " +
                      options.model);
  }
  return Tokenizer(std::move(model));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  if (model_->kind == "bytes" || !is_blank(text)) model_->encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::vector<int32_t> kept;
  for (int32_t id : ids) {
    if (id < 0 || id >= size()) id_error(id, size());
    if (id != kBos && id != kPad && id != kEos) kept.push_back(id);
  }
  return model_->decode(kept);
}

std::string Tokenizer::piece(int32_t id) const {
  if (id < 0 || id >= size()) id_error(id, size());
  constexpr const char* kNames[] = {"<s>", "<pad>", "</s>", "<unk>"};
  return id < kSpecials ? kNames[id] : model_->piece(id);
}

int64_t Tokenizer::size() const { return model_->size(); }
const std::string& Tokenizer::kind() const { return model_->kind; }
const std::string& Tokenizer::blob() const { return model_->blob; }
const std::string& Tokenizer::hash() const { return model_->hash; }

void id_error(int32_t id, int64_t size) {
  throw DataError("tokenizer: id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(size));
}

}  // namespace tactus
