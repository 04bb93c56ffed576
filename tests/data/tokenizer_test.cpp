#include "data/tokenizer.h"

#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

TEST(Tokenizer, RoundTripWithFairseqIds) {
  for (std::string model : {"unigram", "bpe"}) {
    Tokenizer t = Tokenizer::train(toy_sentences(), {.vocab_size = 60, .model = model}, "toy");
    EXPECT_EQ(t.size(), 60);
    EXPECT_EQ(t.piece(0), "<s>");
    EXPECT_EQ(t.piece(1), "<pad>");
    EXPECT_EQ(t.piece(2), "</s>");
    EXPECT_EQ(t.piece(3), "<unk>");
    for (const std::string& sentence : toy_sentences()) {
      std::vector<int32_t> ids = t.encode(sentence);
      for (int32_t id : ids) ASSERT_GT(id, 3);
      ASSERT_EQ(t.decode(ids), sentence);
      ids.insert(ids.begin(), {0, 1});
      ids.push_back(2);
      ASSERT_EQ(t.decode(ids), sentence);
    }
    EXPECT_TRUE(t.encode("").empty());
    EXPECT_EQ(t.decode({}), "");
    std::vector<int32_t> unknown = t.encode("\xe2\x98\x83");
    EXPECT_EQ(unknown.back(), Tokenizer::kUnk);
  }
}

TEST(Tokenizer, TrainingIsDeterministicAndTheBlobIsTheModel) {
  Tokenizer a = Tokenizer::train(toy_sentences(), {.vocab_size = 50}, "toy");
  Tokenizer b = Tokenizer::train(toy_sentences(), {.vocab_size = 50}, "toy");
  EXPECT_EQ(a.blob(), b.blob());
  EXPECT_EQ(a.hash(), b.hash());
  Tokenizer c = Tokenizer::from_blob(a.blob(), "copy");
  EXPECT_EQ(c.hash(), a.hash());
  EXPECT_EQ(c.encode("it is nine"), a.encode("it is nine"));
  EXPECT_NE(Tokenizer::train(toy_sentences(), {.vocab_size = 51}, "toy").hash(), a.hash());
}

TEST(Tokenizer, UntrainableTextIsAnErrorNamingIt) {
  for (auto& sentences : std::vector<std::vector<std::string>>{{}, {"", "  "}, {"a"}, {"ab", "\xe3\x80\x80"}})
    EXPECT_TRUE(
        contains(message_of<DataError>([&] { Tokenizer::train(sentences, {.vocab_size = 5000}, "t.tsv"); }), "t.tsv"));
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { Tokenizer::train(toy_sentences(), {.vocab_size = 8}, "t.tsv"); }), "t.tsv"));
  EXPECT_THROW(Tokenizer::train(toy_sentences(), {.vocab_size = 3}, "t.tsv"), ConfigError);
  // Ideographic spaces alone leave nothing once the text is normalised.
  EXPECT_THROW(Tokenizer::train({"\xe3\x80\x80"}, {.vocab_size = 100}, "t.tsv"), DataError);
}

TEST(Tokenizer, TrainingIsQuiet) {
  testing::internal::CaptureStderr();
  Tokenizer::train(toy_sentences(), {.vocab_size = 50}, "toy");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Tokenizer, DamagedBlobsAndIdsAreErrors) {
  std::string blob = Tokenizer::train(toy_sentences(), {.vocab_size = 50}, "toy").blob();
  for (std::string bad : {std::string(), std::string("not a model"), blob.substr(0, blob.size() / 2), blob.substr(7)})
    EXPECT_TRUE(
        contains(message_of<DataError>([&] { Tokenizer::from_blob(bad, "c.h5: tokenizer"); }), "c.h5: tokenizer"));
  Tokenizer t = Tokenizer::from_blob(blob, "x");
  for (int32_t id : {-1, 50, 1 << 30}) {
    EXPECT_THROW(t.decode(std::vector<int32_t>{4, id}), DataError);
    EXPECT_THROW(t.piece(id), DataError);
  }
}

}  // namespace
}  // namespace tactus
