// Bytes as tokens: id = 4 + byte.
#include "data/text/tokenizer_model.h"

namespace tactus {
namespace {

struct BytesModel : Tokenizer::Model {
  BytesModel() {
    kind = "bytes";
    blob = std::string(kTokenizerMagic) + "bytes 1\n";
    hash = text_hash(blob);
  }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (char c : text) ids.push_back(Tokenizer::kSpecials + static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) {
      if (id >= Tokenizer::kSpecials) text += static_cast<char>(id - Tokenizer::kSpecials);
    }
    return text;
  }
  std::string piece(int32_t id) const override {
    static const char* digits = "0123456789ABCDEF";
    const int byte = id - Tokenizer::kSpecials;
    return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
  }
  int64_t size() const override { return Tokenizer::kSpecials + 256; }
};

}  // namespace

TokenizerModel bytes_tokenizer() { return std::make_shared<BytesModel>(); }

}  // namespace tactus
