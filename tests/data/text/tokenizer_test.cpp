#include "data/text/tokenizer.h"

#include "data/text/line_sample.h"
#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

TEST(Tokenizer, RoundTripWithFairseqIds) {
  for (std::string model : {"unigram", "bpe"}) {
    Tokenizer t = Tokenizer::train(toy_sentences(), {.model = model, .vocab_size = 60}, "toy");
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
  Tokenizer a = Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 50}, "toy");
  Tokenizer b = Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 50}, "toy");
  EXPECT_EQ(a.blob(), b.blob());
  EXPECT_EQ(a.hash(), b.hash());
  Tokenizer c = Tokenizer::from_blob(a.blob(), "copy");
  EXPECT_EQ(c.hash(), a.hash());
  EXPECT_EQ(c.encode("it is nine"), a.encode("it is nine"));
  EXPECT_NE(Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 51}, "toy").hash(), a.hash());
}

TEST(Tokenizer, UntrainableTextIsAnErrorNamingIt) {
  for (auto& sentences : std::vector<std::vector<std::string>>{{}, {"", "  "}, {"a"}, {"ab", "\xe3\x80\x80"}})
    EXPECT_TRUE(contains(
        message_of<DataError>([&] { Tokenizer::train(sentences, {.model = "unigram", .vocab_size = 5000}, "t.tsv"); }),
        "t.tsv"));
  EXPECT_TRUE(contains(
      message_of<DataError>([&] { Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 8}, "t.tsv"); }),
      "t.tsv"));
  EXPECT_THROW(Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 3}, "t.tsv"), ConfigError);
  // Ideographic spaces alone leave nothing once the text is normalised.
  EXPECT_THROW(Tokenizer::train({"\xe3\x80\x80"}, {.model = "unigram", .vocab_size = 100}, "t.tsv"), DataError);
}

TEST(Tokenizer, TrainingIsQuiet) {
  testing::internal::CaptureStderr();
  Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 50}, "toy");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Tokenizer, DamagedBlobsAndIdsAreErrors) {
  std::string blob = Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 50}, "toy").blob();
  for (std::string bad : {std::string(), std::string("not a model"), blob.substr(0, blob.size() / 2), blob.substr(7)})
    EXPECT_TRUE(
        contains(message_of<DataError>([&] { Tokenizer::from_blob(bad, "c.h5: tokenizer"); }), "c.h5: tokenizer"));
  Tokenizer t = Tokenizer::from_blob(blob, "x");
  for (int32_t id : {-1, 50, 1 << 30}) {
    EXPECT_THROW(t.decode(std::vector<int32_t>{4, id}), DataError);
    EXPECT_THROW(t.piece(id), DataError);
  }
}

TEST(Tokenizer, KindsOfSentencePieceModels) {
  for (const char* model : {"unigram", "bpe", "char"}) {
    const Tokenizer t = Tokenizer::train(toy_sentences(),
                                         {.model = model, .vocab_size = std::string(model) == "char" ? 27 : 50}, "toy");
    EXPECT_EQ(t.kind(), model);
    EXPECT_EQ(Tokenizer::from_blob(t.blob(), "copy").kind(), model);
  }
}

class TokenizerFileTest : public FolderTest {
 protected:
  const std::string foreign_ = std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/foreign.model";
};

/// A model made with SentencePiece's own defaults (<unk> 0, <s> 1, </s> 2, no <pad>), as fairseq's recipes ship.
TEST_F(TokenizerFileTest, ForeignModelsAreRenumbered) {
  const Tokenizer t = Tokenizer::load({.model = "bpe", .file = foreign_}, "target");
  EXPECT_EQ(t.size(), 41) << "40 pieces, 3 of them special, and our 4";
  const std::vector<int32_t> ids = t.encode("the red dog");
  EXPECT_EQ(t.decode(ids), "the red dog");
  for (int32_t id : ids) EXPECT_GE(id, Tokenizer::kSpecials);
  EXPECT_EQ(t.piece(4), "at") << "the first piece that is not special";
  EXPECT_EQ(t.piece(2), "</s>");
  EXPECT_EQ(t.encode("\xe2\x98\x83").back(), Tokenizer::kUnk);
  const Tokenizer copy = Tokenizer::from_blob(t.blob(), "copy");
  EXPECT_EQ(copy.hash(), t.hash());
  EXPECT_EQ(copy.encode("the red dog"), ids);
  for (size_t bytes : {size_t{20}, size_t{34}, size_t{60}, t.blob().size() / 2})
    EXPECT_THROW(Tokenizer::from_blob(t.blob().substr(0, bytes), "cut"), DataError) << bytes;
}

TEST_F(TokenizerFileTest, AFairseqDictionaryNumbersThePieces) {
  const Tokenizer plain = Tokenizer::load({.model = "none", .file = foreign_}, "target");
  std::string dictionary;
  for (int32_t id = static_cast<int32_t>(plain.size()) - 1; id >= 4; --id) dictionary += plain.piece(id) + " 1\n";
  const Tokenizer t = Tokenizer::load({.file = foreign_, .dictionary = write("dict.txt", dictionary)}, "target");
  EXPECT_EQ(t.size(), plain.size());
  EXPECT_EQ(t.piece(4), plain.piece(static_cast<int32_t>(plain.size()) - 1));
  const std::vector<int32_t> a = plain.encode("a big cat"), b = t.encode("a big cat");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i] + b[i], plain.size() + 3);
  EXPECT_EQ(Tokenizer::from_blob(t.blob(), "copy").encode("a big cat"), b);
  EXPECT_EQ(t.decode(b), "a big cat");
  write("dict.txt", "nonsense 1\n");
  EXPECT_TRUE(contains(
      message_of<DataError>([&] { Tokenizer::load({.file = foreign_, .dictionary = path("dict.txt")}, "target"); }),
      "'nonsense' is no piece"));
}

TEST_F(TokenizerFileTest, WhatTheRecipeSaysMustBeTrue) {
  EXPECT_TRUE(
      contains(message_of<ConfigError>([&] { Tokenizer::load({.model = "unigram", .file = foreign_}, "source"); }),
               "kind bpe, but source.model is unigram"));
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { Tokenizer::load({.file = path("no.model")}, "target"); }), "no.model"));
  EXPECT_THROW(Tokenizer::load({.file = write("w.txt", "a\n"), .dictionary = "d"}, "target"), ConfigError);
}

TEST_F(TokenizerFileTest, FromACorpus) {
  write_toy_corpus(path("c.h5"), {5});
  const Tokenizer target = Tokenizer::load({.model = "unigram", .file = path("c.h5")}, "target");
  EXPECT_EQ(target.size(), 60);
  EXPECT_EQ(Tokenizer::load({.file = path("c.h5")}, "source").size(), 40);
  write_toy_corpus(path("d.h5"), {5}, 8, false);
  EXPECT_TRUE(contains(message_of<DataError>([&] { Tokenizer::load({.file = path("d.h5")}, "source"); }),
                       "no source tokenizer"));
}

TEST(Tokenizer, BytesAreExactForAnything) {
  const Tokenizer t = Tokenizer::train({}, {.model = "bytes"}, "none");
  EXPECT_EQ(t.size(), 260);
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  const std::vector<int32_t> ids = t.encode(all);
  ASSERT_EQ(ids.size(), 256u);
  for (int b = 0; b < 256; ++b) EXPECT_EQ(ids[static_cast<size_t>(b)], 4 + b);
  EXPECT_EQ(t.decode(ids), all);
  EXPECT_EQ(t.encode("  ").size(), 2u) << "blank bytes are bytes";
  EXPECT_EQ(Tokenizer::from_blob(t.blob(), "copy").kind(), "bytes");
  EXPECT_EQ(t.piece(4 + 10), "<0x0A>");
}

TEST(Tokenizer, WordsByFrequencyThenBytes) {
  const Tokenizer t = Tokenizer::train({"b a c a", " c\ta ", ""}, {.model = "words"}, "toy");
  EXPECT_EQ(t.size(), 7);
  EXPECT_EQ(t.piece(4) + t.piece(5) + t.piece(6), "acb");
  EXPECT_EQ(t.encode("c x b"), (std::vector<int32_t>{5, 3, 6}));
  EXPECT_EQ(t.decode(t.encode("c  x b")), "c <unk> b");
  const Tokenizer two = Tokenizer::train({"b a c a", " c\ta "}, {.model = "words", .vocab_size = 6}, "toy");
  EXPECT_EQ(two.size(), 6);
  EXPECT_EQ(two.encode("b"), std::vector<int32_t>{3});
  EXPECT_THROW(Tokenizer::train({"", " "}, {.model = "words"}, "toy"), DataError);
}

/// Entries that mean something to YAML, or that other programs take for the end of a line.
TEST_F(TokenizerFileTest, AnyWordRoundTrips) {
  const std::vector<std::string> words = {"~",
                                          "null",
                                          "yes",
                                          "no",
                                          "n",
                                          ":",
                                          "#",
                                          "-",
                                          "\"",
                                          "`",
                                          "<<",
                                          "1e3",
                                          "0x10",
                                          "\xc2\x85",
                                          "\xe2\x80\xa8",
                                          "\xc2\xa0",
                                          "'",
                                          "\\",
                                          "{",
                                          "\xef\xbb\xbf"
                                          "x"};
  std::string list, text;
  for (const std::string& w : words) list += w + "\n", text += (text.empty() ? "" : " ") + w;
  const Tokenizer t = Tokenizer::load({.file = write("w.txt", list)}, "target");
  ASSERT_EQ(t.size(), 4 + static_cast<int64_t>(words.size()));
  for (size_t i = 0; i < words.size(); ++i) EXPECT_EQ(t.piece(4 + static_cast<int32_t>(i)), words[i]);
  EXPECT_EQ(t.decode(t.encode(text)), text);
  CorpusWriter writer(path("c.h5"), {.features = {.kind = "none"}}, t, std::nullopt);
  writer.begin_split("train", {});
  Item item;
  item.id = "a", item.tgt_text = text;
  writer.add(item, std::span<const float>());
  writer.end_split(report_json(1, 1, 0, {}));
  writer.commit();
  Corpus corpus = Corpus::open(path("c.h5"));
  EXPECT_EQ(corpus.target_tokenizer().hash(), t.hash());
  EXPECT_EQ(corpus.target_tokenizer().decode(corpus.split("train")->tgt_tokens()[0]), text);
}

TEST_F(TokenizerFileTest, FairseqDictionariesKeepTheirOrder) {
  const Tokenizer t =
      Tokenizer::load({.model = "words", .file = write("dict.txt", "the 12\n, 9\n# 3\nmadeupword0 0\n")}, "target");
  EXPECT_EQ(t.encode(", the #"), (std::vector<int32_t>{5, 4, 6}));
  write("dict.txt", "the 12\nthe 3\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { Tokenizer::load({.file = path("dict.txt")}, "target"); }),
                       "dict.txt:2: 'the' stands in line 1 already"));
  write("dict.txt", "the 12\nthe 3 #fairseq:overwrite\n");
  EXPECT_THROW(Tokenizer::load({.file = path("dict.txt")}, "target"), DataError);
  write("dict.txt", "one 1\ntwo words here\n");
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { Tokenizer::load({.file = path("dict.txt")}, "target"); }), "dict.txt:1"));
}

TEST(Tokenizer, WordBlobsAreChecked) {
  const std::string head = "tactus-tokenizer words 1\n";
  EXPECT_EQ(Tokenizer::from_blob(head + "a\nb\n", "x").size(), 6);
  for (const std::string& bad :
       {head, head + "a\na\n", head + "a b\n", head + "a", head + "\n", head + "\xff\n",
        std::string("tactus-tokenizer words 9\na\n"), std::string("tactus-tokenizer bytes 9\n")})
    EXPECT_TRUE(contains(message_of<DataError>([&] { Tokenizer::from_blob(bad, "x.h5: t"); }), "x.h5: t")) << bad;
}

/// Damaged blobs of every kind are refused or give a tokenizer that works; nothing crashes.
TEST(Tokenizer, MutatedBlobs) {
  const Tokenizer foreign =
      Tokenizer::load({.file = std::string(TACTUS_SOURCE_DIR) + "/tests/data/fixtures/foreign.model"}, "target");
  const std::vector<std::string> blobs = {foreign.blob(), "tactus-tokenizer words 1\nalpha\nbeta\ngamma\n"};
  Rng rng(5);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string blob = blobs[static_cast<size_t>(round % 2)];
    for (uint64_t n = 1 + rng.below(6); n > 0; --n) blob[rng.below(blob.size())] = static_cast<char>(rng.next());
    if (rng.below(3) == 0) blob.resize(rng.below(blob.size()));
    try {
      const Tokenizer t = Tokenizer::from_blob(blob, "x");
      t.decode(t.encode("the alpha cat"));
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(LineSample, KeepsTheLimitSpreadEvenly) {
  LineSample few(10), many(8);
  for (int i = 0; i < 10; ++i) few.add(std::to_string(i));
  EXPECT_EQ(few.lines().size(), 10u);
  for (int i = 0; i < 1000; ++i) many.add(std::to_string(i));
  ASSERT_GE(many.lines().size(), 4u);
  ASSERT_LE(many.lines().size(), 8u);
  const int step = std::stoi(many.lines()[1]);
  for (size_t i = 0; i < many.lines().size(); ++i)
    EXPECT_EQ(many.lines()[i], std::to_string(static_cast<int>(i) * step));
  EXPECT_GT(std::stoi(many.lines().back()) + step, 999);
}

}  // namespace
}  // namespace tactus
