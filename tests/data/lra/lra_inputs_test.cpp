// Readers of documents: movie reviews and pairs of papers.
#include "data/lra/lra_inputs.h"

#include "tests/data/lra/lra_test_util.h"

namespace tactus {
namespace {

class LraText : public LraTest {};
class LraRetrieval : public LraTest {};

TEST_F(LraText, ReviewsOfBothFoldersInTheOrderOfTheirNames) {
  write("train/neg/0_3.txt", "Bad.<br /><br />Very.\n");
  write("train/neg/2_1.txt", "caf\xe9 \xff");
  write("train/pos/0_9.txt", "Good");
  write("train/pos/10_10.txt", "");
  write("train/pos/urls.html", "no review");
  write("train/unsup/5_0.txt", "no label");
  write("test/neg/7_2.txt", "seven");
  write("test/pos/8_9.txt", "eight");
  const auto train = items(open_lra_text, "train");
  ASSERT_EQ(train.size(), 4u);
  const std::vector<std::string> ids = {"neg/0_3", "pos/0_9", "pos/10_10", "neg/2_1"};
  const std::vector<std::string> texts = {"Bad.<br /><br />Very.\n", "Good", "", "caf\xe9 \xff"};
  const std::vector<std::string> labels = {"0", "1", "1", "0"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(train[i].id, ids[i]);
    EXPECT_EQ(train[i].src_text, texts[i]);
    EXPECT_EQ(train[i].tgt_text, labels[i]);
    EXPECT_NE(train[i].where.find(ids[i] + ".txt"), std::string::npos);
  }
  // The reference validates on the test set.
  for (const std::string split : {"valid", "dev", "test"}) {
    const auto test = items(open_lra_text, split);
    ASSERT_EQ(test.size(), 2u);
    EXPECT_EQ(test[0].src_text, "seven");
  }
  const auto reader = open_lra_text(input("lra_text"), "train", OnError::stop);
  EXPECT_TRUE(reader->binary_source() && reader->has_src_text());
  EXPECT_FALSE(reader->has_src2_text() || reader->has_media());
}

TEST_F(LraText, TheDistributedFolderAndMissingParts) {
  write("aclImdb/train/pos/1_8.txt", "one");
  expect_error<DataError>([&] { items(open_lra_text, "train"); }, {"aclImdb/train/neg", "cannot list"});
  write("aclImdb/train/neg/readme", "");
  expect_error<DataError>([&] { items(open_lra_text, "train"); }, {"aclImdb/train/neg", "no .txt"});
  write("aclImdb/train/neg/1_2.txt", "two");
  EXPECT_EQ(items(open_lra_text, "train").size(), 2u);
  expect_error<DataError>([&] { items(open_lra_text, "test"); }, {path("test"), path("aclImdb/test")});
  expect_error<ConfigError>([&] { items(open_lra_text, "unsup"); }, {"'unsup'"});
  std::filesystem::create_directories(path("aclImdb/train/neg/2_2.txt"));
  expect_error<DataError>([&] { items(open_lra_text, "train"); }, {"neg/2_2.txt"});
  DropCounts drops;
  EXPECT_EQ(items(open_lra_text, "train", OnError::skip, &drops).size(), 2u);
  EXPECT_EQ(drops.at("unreadable").ids, std::vector<std::string>{"neg/2_2"});
}

TEST_F(LraRetrieval, RowsAreReadByteForByte) {
  write("new_aan_pairs.train.tsv",
        "0.0\tP05-1001\tW06-2\tb'first \\n doc'\tsecond \xff \"doc\"\n"
        "\"1.0\"\t\"A\"\t\"B\"\t\"quoted\"\t\n"
        "1\tC\tD\tx\ty");
  const auto rows = items(open_lra_retrieval, "train");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].id, "1:P05-1001:W06-2");
  EXPECT_EQ(rows[0].src_text, "b'first \\n doc'");
  EXPECT_EQ(rows[0].src2_text, "second \xff \"doc\"");
  EXPECT_EQ(rows[1].id, "2:A:B");
  EXPECT_EQ(rows[1].src_text, "\"quoted\"");
  EXPECT_EQ(rows[1].src2_text, "");
  EXPECT_EQ(rows[0].tgt_text + rows[1].tgt_text + rows[2].tgt_text, "011");
  const auto reader = open_lra_retrieval(input("lra_retrieval"), "train", OnError::stop);
  EXPECT_TRUE(reader->binary_source() && reader->has_src_text() && reader->has_src2_text());
}

TEST_F(LraRetrieval, FaultyRows) {
  write("tsv_data/new_aan_pairs.eval.tsv",
        "0.0\ta\tb\tc\td\r\n0.5\ta\tb\tc\td\n1.0\ta\tb\tc\n\n1.0\ta\xff\tb\tc\td\n1\ta\tb\tc\td\te\n1\tz\tb\tc\td\n");
  expect_error<DataError>([&] { items(open_lra_retrieval, "valid"); }, {"new_aan_pairs.eval.tsv:2", "label"});
  DropCounts drops;
  const auto rows = items(open_lra_retrieval, "valid", OnError::skip, &drops);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].src2_text, "d");
  EXPECT_EQ(rows[1].id, "7:z:b");
  EXPECT_EQ(drops.at("bad_row").count, 5);
  EXPECT_NE(drops.at("bad_row").first.find(":2: the label"), std::string::npos);
  expect_error<DataError>([&] { items(open_lra_retrieval, "test"); }, {"new_aan_pairs.test.tsv"});
  std::filesystem::create_directories(path("new_aan_pairs.test.tsv"));
  expect_error<DataError>([&] { items(open_lra_retrieval, "test"); }, {"new_aan_pairs.test.tsv", "cannot open"});
}

}  // namespace
}  // namespace tactus
