// SentencePiece models: trained here, or foreign ones renumbered to our special ids.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "core/error.h"
#include "core/files/files.h"
#include "data/text/text_lines.h"
#include "data/text/tokenizer_model.h"
#include "data/text/tokenizers/charsmap.h"

namespace tactus {
namespace {

/// Blobs of renumbered models: this line, the number of dictionary words and the words, one a line, then the model.
constexpr std::string_view kHeader = "tactus-tokenizer sentencepiece 1\n";

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
  TokenizerOptions characters{.model = "char", .vocab_size = 1000000};
  if (!train_model(sentences, characters, &blob).ok()) return false;
  return sentencepiece_from_blob(std::move(blob), "characters")->size() > Tokenizer::kSpecials;
}

struct SentencePieceModel : Tokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
  /// Renumbered models: ours to theirs (-1: none) and back. Empty where ids are ours already.
  std::vector<int> theirs;
  std::vector<int32_t> ours;

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    std::vector<int> found;
    const auto status = processor.Encode(text, &found);
    if (!status.ok())
      throw DataError("tokenizer: cannot encode '" + std::string(text.substr(0, 80)) + "': " + one_line(status));
    for (int id : found) ids.push_back(ours.empty() ? id : ours[static_cast<size_t>(id)]);
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<int> known;
    for (int32_t id : ids) {
      known.push_back(theirs.empty()          ? id
                      : id == Tokenizer::kUnk ? processor.unk_id()
                                              : theirs[static_cast<size_t>(id)]);
    }
    std::string text;
    if (const auto status = processor.Decode(known, &text); !status.ok())
      throw DataError("tokenizer: cannot decode: " + one_line(status));
    return text;
  }
  std::string piece(int32_t id) const override {
    if (theirs.empty()) return processor.IdToPiece(id);
    return processor.IdToPiece(theirs[static_cast<size_t>(id)]);
  }
  int64_t size() const override {
    return theirs.empty() ? processor.GetPieceSize() : static_cast<int64_t>(theirs.size());
  }
};

/// A cursor over a Protocol Buffers message; `good` turns false at the first thing that does not fit.
struct Message {
  std::string_view bytes;
  bool good = true;

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    good = false;
    return 0;
  }
  std::string_view take(uint64_t count) {
    if (count > bytes.size()) good = false;
    const std::string_view part = good ? bytes.substr(0, count) : std::string_view();
    if (good) bytes.remove_prefix(count);
    return part;
  }
  /// Calls f(field, value, content) for each field; one of value and content is meant. False when something did not
  /// fit.
  template <class F>
  bool each(F f) {
    while (good && !bytes.empty()) {
      const uint64_t tag = number();
      // The library reads tags as 32 bits and would see another field.
      if (tag > 0xffffffffu) good = false;
      switch (tag & 7) {
        case 0:
          f(tag >> 3, number(), std::string_view());
          break;
        case 1:
          take(8);
          break;
        case 2:
          f(tag >> 3, 0, take(number()));
          break;
        case 5:
          take(4);
          break;
        default:
          good = false;
      }
    }
    return good;
  }
};

/// Whether the message can be given to the library. normalizer_spec (field 3) and denormalizer_spec (field 5) hold a
/// precompiled_charsmap (field 2), which the library follows beyond its end where it is damaged.
bool is_safe(std::string_view proto) {
  bool sound = true;
  const bool whole = Message{proto}.each([&](uint64_t field, uint64_t, std::string_view content) {
    if (field != 3 && field != 5) return;
    sound &= Message{content}.each([&](uint64_t inner, uint64_t, std::string_view charsmap) {
      if (inner == 2) sound &= charsmap_is_sound(charsmap);
    });
  });
  return whole && sound;
}

/// The kind is a number in the model's message: trainer_spec (field 2) holds model_type (field 3). Read from the bytes,
/// because the library's packages do not install the message's header.
std::string kind_of(std::string_view blob) {
  uint64_t type = 1;  // the message's default
  Message{blob}.each([&](uint64_t field, uint64_t, std::string_view content) {
    if (field != 2) return;
    Message{content}.each([&](uint64_t inner, uint64_t value, std::string_view) {
      if (inner == 3) type = value;
    });
  });
  return type == 2 ? "bpe" : type == 3 ? "word" : type == 4 ? "char" : "unigram";
}

bool has_our_ids(const sentencepiece::SentencePieceProcessor& p) {
  return p.bos_id() == Tokenizer::kBos && p.pad_id() == Tokenizer::kPad && p.eos_id() == Tokenizer::kEos &&
         p.unk_id() == Tokenizer::kUnk;
}

/// Numbers the pieces: `words` from id 4 on, or every piece that is not special where there are none.
void renumber(SentencePieceModel& m, const std::vector<std::string>& words, const std::string& where) {
  const auto& p = m.processor;
  m.ours.assign(static_cast<size_t>(p.GetPieceSize()), Tokenizer::kUnk);
  m.theirs.assign(Tokenizer::kSpecials, -1);
  auto add = [&](int id) {
    m.ours[static_cast<size_t>(id)] = static_cast<int32_t>(m.theirs.size());
    m.theirs.push_back(id);
  };
  if (words.empty()) {
    for (int id = 0; id < p.GetPieceSize(); ++id) {
      if (!p.IsControl(id) && !p.IsUnknown(id)) add(id);
    }
    return;
  }
  for (const std::string& word : words) {
    const int id = p.PieceToId(word);
    if (p.IsUnknown(id)) throw DataError(where + ": the dictionary's '" + word + "' is no piece of the model");
    add(id);
  }
}

}  // namespace

TokenizerModel train_sentencepiece(const std::vector<std::string>& sentences, const TokenizerOptions& options,
                                   const std::string& what) {
  if (options.vocab_size < 8) {
    throw ConfigError("tokenizer for " + what + ": vocab_size is " + std::to_string(options.vocab_size) +
                      ", expected 8 or more");
  }
  // The unigram trainer ends the process when nothing is left of the text.
  if (!leaves_characters(sentences)) throw DataError(what + ": no text to train a tokenizer on");
  std::string blob;
  const auto status = train_model(sentences, options, &blob);
  if (!status.ok()) {
    throw DataError(what + ": cannot train a tokenizer of " + std::to_string(options.vocab_size) + " pieces (" +
                    one_line(status) + "); choose another vocab_size");
  }
  return sentencepiece_from_blob(std::move(blob), what);
}

namespace {

std::shared_ptr<SentencePieceModel> load_proto(std::string_view proto, const std::string& where) {
  auto m = std::make_shared<SentencePieceModel>();
  const auto status =
      proto.empty() ? sentencepiece::util::Status(sentencepiece::util::StatusCode::kInvalidArgument, "it is empty")
                    : m->processor.LoadFromSerializedProto(proto);
  if (!status.ok()) throw DataError(where + ": not a SentencePiece model (" + one_line(status) + ")");
  if (!is_safe(proto)) throw DataError(where + ": a SentencePiece model whose table of characters is damaged");
  m->kind = kind_of(proto);
  return m;
}

TokenizerModel with_blob(std::shared_ptr<SentencePieceModel> m, std::string blob) {
  m->hash = text_hash(blob);
  m->blob = std::move(blob);
  return m;
}

/// Words of the head of a renumbered blob; leaves the model in `proto`.
std::vector<std::string> read_head(std::string_view& proto, const std::string& where) {
  auto line = [&] {
    const size_t end = proto.find('\n');
    if (end == std::string_view::npos) throw DataError(where + ": a renumbered SentencePiece model, cut short");
    const std::string_view text = proto.substr(0, end);
    proto.remove_prefix(end + 1);
    return std::string(text);
  };
  proto.remove_prefix(kHeader.size());
  int64_t count = -1;
  const std::string number = line();
  std::from_chars(number.data(), number.data() + number.size(), count);
  if (count < 0 || count > static_cast<int64_t>(proto.size()))
    throw DataError(where + ": a renumbered SentencePiece model with a damaged head");
  std::vector<std::string> words;
  for (int64_t i = 0; i < count; ++i) words.push_back(line());
  return words;
}

}  // namespace

TokenizerModel sentencepiece_from_file(const std::string& path, const std::string& dictionary) {
  std::string proto = read_text_file(path);
  std::shared_ptr<SentencePieceModel> m = load_proto(proto, path);
  if (has_our_ids(m->processor) && dictionary.empty()) return with_blob(std::move(m), std::move(proto));
  const std::vector<std::string> words =
      dictionary.empty() ? std::vector<std::string>() : read_fairseq_dictionary(dictionary);
  renumber(*m, words, path);
  std::string head = std::string(kHeader) + std::to_string(words.size()) + "\n";
  for (const std::string& word : words) head += word + "\n";
  return with_blob(std::move(m), head + proto);
}

TokenizerModel sentencepiece_from_blob(std::string blob, const std::string& where) {
  std::string_view proto = blob;
  const bool renumbered = proto.starts_with(kHeader);
  std::vector<std::string> words;
  if (renumbered) words = read_head(proto, where);
  std::shared_ptr<SentencePieceModel> m = load_proto(proto, where);
  if (renumbered) {
    renumber(*m, words, where);
  } else if (const auto& p = m->processor; !has_our_ids(p)) {
    throw DataError(where + ": special ids are <s> " + std::to_string(p.bos_id()) + ", <pad> " +
                    std::to_string(p.pad_id()) + ", </s> " + std::to_string(p.eos_id()) + ", <unk> " +
                    std::to_string(p.unk_id()) + "; expected 0, 1, 2, 3");
  }
  return with_blob(std::move(m), std::move(blob));
}

}  // namespace tactus
