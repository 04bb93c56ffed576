// The character table of SentencePiece models, which the library follows without looking.
#include "data/text/tokenizers/charsmap.h"

#include <sentencepiece_trainer.h>

#include <cstring>

#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

class Sentences : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return at_ == sentences_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return sentences_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> sentences_ = toy_sentences();
  size_t at_ = 0;
};

std::string model_with(const std::string& normaliser) {
  const std::string arguments = "--model_type=unigram --vocab_size=50 --normalization_rule_name=" + normaliser +
                                " --bos_id=0 --pad_id=1 --eos_id=2 --unk_id=3 --num_threads=1 --minloglevel=2";
  Sentences sentences;
  std::string blob;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &sentences, &blob);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return blob;
}

/// A table of `units` units of zero bits, with one text.
std::string table(uint32_t units) {
  std::string bytes(4 + 4 * units, '\0');
  const uint32_t size = 4 * units;
  std::memcpy(bytes.data(), &size, 4);
  return bytes + std::string("x\0", 2);
}
std::string with_unit(std::string bytes, size_t at, uint32_t bits) {
  bytes.replace(4 + 4 * at, 4, reinterpret_cast<const char*>(&bits), 4);
  return bytes;
}

TEST(Charsmap, TablesOfTheLibraryAreSound) {
  for (const char* name : {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}) {
    const Tokenizer t = Tokenizer::from_blob(model_with(name), name);
    EXPECT_EQ(t.decode(t.encode("one minutes past two")), "one minutes past two") << name;
  }
}

TEST(Charsmap, StepsBeyondTheTableAreSeen) {
  const std::string good = table(256);
  EXPECT_TRUE(charsmap_is_sound(""));
  EXPECT_TRUE(charsmap_is_sound(good));
  for (size_t bytes : {1, 3, 4, 5, 1000, 1028}) EXPECT_FALSE(charsmap_is_sound(good.substr(0, bytes))) << bytes;
  EXPECT_FALSE(charsmap_is_sound(table(0)));
  EXPECT_FALSE(charsmap_is_sound(table(255))) << "a byte can lead to unit 255";
  EXPECT_FALSE(charsmap_is_sound(good + "y")) << "the last text has no end";
  EXPECT_FALSE(charsmap_is_sound(with_unit(good, 7, 256u << 10))) << "children beyond the end";
  EXPECT_FALSE(charsmap_is_sound(with_unit(good, 7, (1u << 10) | 0x200))) << "the same, offset scaled";
  EXPECT_FALSE(charsmap_is_sound(with_unit(good, 0, 0xfffffc00))) << "the root counts, whatever its bits";
  EXPECT_FALSE(charsmap_is_sound(with_unit(with_unit(good, 7, (8u << 10) | 0x100), 15, 0x80000002))) << "no such text";
  EXPECT_TRUE(charsmap_is_sound(with_unit(with_unit(good, 7, (8u << 10) | 0x100), 15, 0x80000001)));
}

/// Models whose table is damaged made the library read wild memory when they encoded.
TEST(Charsmap, DamagedTablesAreRefusedOrHarmless) {
  const std::string model = model_with("nmt_nfkc");
  Rng rng(11);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string blob = model;
    for (uint64_t n = 1 + rng.below(40); n > 0; --n) blob[rng.below(blob.size())] = static_cast<char>(rng.next());
    try {
      const Tokenizer t = Tokenizer::from_blob(blob, "x.h5: tokenizer");
      for (const char* text : {"one minutes", "\xef\xbc\xa1\xe2\x91\xa0 \xff\xc3", "\xe3\x8c\x95\xc2\xbd"})
        t.decode(t.encode(text));
    } catch (const DataError& e) {
      ++refused;
      EXPECT_TRUE(contains(e.what(), "x.h5: tokenizer")) << e.what();
    }
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace tactus
