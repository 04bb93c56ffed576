// Pairs of text files and JSON lines.
#include "tests/data/input/input_test_util.h"

namespace tactus {
namespace {

class TextInputTest : public FolderTest {
 protected:
  std::vector<Item> read(const std::string& format, OnError on_error = OnError::stop) {
    InputOptions o;
    o.format = format, o.path = folder_.string(), o.source = source_, o.target = target_;
    reader_ = open_items(o, "train", on_error);
    return all_items(*reader_);
  }
  std::string source_ = "en", target_ = "de";
  std::unique_ptr<ItemReader> reader_;
};

/// Empty and blank lines are items like others; only \n ends one.
TEST_F(TextInputTest, PairsLineByLine) {
  write("train.en",
        "\xef\xbb\xbf"
        "One.\n\n  \nA\x0c"
        "B\xe2\x80\xa8"
        "C\xc2\x85"
        "D\rE\r\nlast");
  write("train.de", "Eins.\nZwei.\n\nVier\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { read("text_pair"); }), "different numbers of lines"));
  write("train.de", "Eins.\nZwei.\n\nVier\n ");
  const std::vector<Item> items = read("text_pair");
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(items[0].src_text, "One.");
  EXPECT_EQ(items[1].src_text, "");
  EXPECT_EQ(items[1].tgt_text, "Zwei.");
  EXPECT_EQ(items[2].src_text, "  ");
  EXPECT_EQ(items[3].src_text,
            "A\x0c"
            "B\xe2\x80\xa8"
            "C\xc2\x85"
            "D\rE");
  EXPECT_EQ(items[4].src_text, "last");
  EXPECT_EQ(items[4].id, "train-5");
  EXPECT_EQ(reader_->total(), 5);
  source_ = "";
  EXPECT_EQ(read("text_pair").size(), 5u) << "one side alone";
  EXPECT_FALSE(reader_->has_src_text());
  target_ = "";
  EXPECT_THROW(read("text_pair"), ConfigError);
}

TEST_F(TextInputTest, JsonLines) {
  write("train.jsonl",
        R"({"id": 7, "document": "Long \u00e4\ntext.", "summary": "Short.", "n": 1.5, "ok": true, "nested": [1]})"
        "\n\n"
        R"({"summary": "Other", "document": "", "id": "x", "n": null})"
        "\n");
  source_ = "document", target_ = "summary";
  const std::vector<Item> items = read("jsonl");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].id, "7");
  EXPECT_EQ(items[0].src_text, "Long \xc3\xa4 text.");
  EXPECT_EQ(items[0].tgt_text, "Short.");
  EXPECT_EQ(reader_->extra_columns(), (std::vector<std::string>{"n", "ok"}));
  EXPECT_EQ(items[0].extra, (std::vector<std::string>{"1.5", "true"}));
  EXPECT_EQ(items[1].extra, (std::vector<std::string>{"", ""}));
}

TEST_F(TextInputTest, JsonLinesWithAudio) {
  source_ = target_ = "";
  write("train.jsonl", R"({"audio": "a.wav", "tgt_text": "x", "start": 1.5, "duration": 2, "n_frames": 198})"
                       "\n");
  const std::vector<Item> items = read("jsonl");
  EXPECT_EQ(items.at(0).id, "train-1");
  EXPECT_EQ(items[0].media.path, path("a.wav"));
  EXPECT_EQ(items[0].media.start_seconds, 1.5);
  EXPECT_EQ(items[0].media.duration_seconds, 2);
  EXPECT_EQ(items[0].n_frames, 198);
}

TEST_F(TextInputTest, JsonFaults) {
  source_ = target_ = "";
  write("train.jsonl", "{\"tgt_text\": \"x\"}\n{\"tgt_text\": [1]}\n{\"tgt_text\": \"y\"\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { read("jsonl"); }), "train.jsonl:2"));
  EXPECT_EQ(read("jsonl", OnError::skip).size(), 1u);
  EXPECT_EQ(reader_->dropped().at("bad_line").count, 2);
  write("train.jsonl", "{\"text\": \"x\"}\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { read("jsonl"); }), "key 'tgt_text' is missing; there are: text"));
  write("train.jsonl", "\n");
  EXPECT_THROW(read("jsonl"), DataError);
  write("train.jsonl", "{\"id\": 1, \"tgt_text\": \"x\"}\n{\"id\": 1, \"tgt_text\": \"x\"}\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { read("jsonl", OnError::skip); }), "id was used before"));
}

TEST_F(TextInputTest, MutatedJson) {
  source_ = "a", target_ = "b";
  const std::string good = R"({"id": "q", "a": "text \u00e4", "b": "more", "c": [1, {"d": null}]})"
                           "\n"
                           R"({"id": "r", "a": "1", "b": "2"})"
                           "\n";
  expect_items_or_data_error(good, 400, [&](const std::string& bytes) {
    write("train.jsonl", bytes);
    return read("jsonl", OnError::skip).size();
  });
}

}  // namespace
}  // namespace tactus
