#include "data/manifest.h"

#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

class ManifestTest : public FolderTest {
 protected:
  std::string error(const std::string& text) {
    std::string file = write("m.tsv", text);
    std::string message = message_of<DataError>([&] { read_manifest(file); });
    EXPECT_TRUE(contains(message, file)) << message;
    return message;
  }
};

TEST_F(ManifestTest, ColumnsAreFoundByName) {
  std::string file = write("m.tsv",
                           "tgt_text\tnote\tid\tn_frames\taudio\tspeaker\tlength\n"
                           "halb zehn\tx\ta1\t120\twav/a.flac\tbob\t1.2\r\n"
                           "\"zehn\" Uhr \\n\t\ta2\t0\t/abs/b.flac\t\t\n");
  Manifest m = read_manifest(file);
  ASSERT_EQ(m.rows.size(), 2u);
  EXPECT_EQ(m.extra_columns, (std::vector<std::string>{"note", "length"}));
  EXPECT_FALSE(m.has_src_text);
  EXPECT_EQ(m.rows[0].id, "a1");
  EXPECT_EQ(m.rows[0].n_frames, 120);
  EXPECT_EQ(m.rows[0].tgt_text, "halb zehn");
  EXPECT_EQ(m.rows[0].speaker, "bob");
  EXPECT_EQ(m.rows[0].extra, (std::vector<std::string>{"x", "1.2"}));
  EXPECT_EQ(m.rows[1].tgt_text, "\"zehn\" Uhr \\n");
  EXPECT_EQ(m.rows[1].extra, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(m.audio_path(m.rows[0]), path("wav/a.flac"));
  EXPECT_EQ(m.audio_path(m.rows[1]), "/abs/b.flac");
  EXPECT_EQ(m.where(m.rows[1]), file + ":3 (id a2)");
}

TEST_F(ManifestTest, HeaderErrors) {
  EXPECT_TRUE(contains(error(""), "empty file"));
  EXPECT_TRUE(contains(error("id\taudio\ttgt_text\n"), "m.tsv:1: column 'n_frames' is missing"));
  EXPECT_TRUE(contains(error("audio\tn_frames\ttgt_text\n"), "column 'id' is missing; the header has: audio"));
  EXPECT_TRUE(contains(error("id\tid\taudio\tn_frames\ttgt_text\n"), "'id' appears twice"));
}

const char* const kHeader = "id\taudio\tn_frames\ttgt_text\n";

TEST_F(ManifestTest, RowErrorsNameLineAndId) {
  auto row_error = [&](const std::string& row) { return error(kHeader + std::string("ok\ta.wav\t3\tx\n") + row); };
  EXPECT_TRUE(contains(row_error("b\ta.wav\t3\n"), "m.tsv:3: 3 fields, the header has 4"));
  EXPECT_TRUE(contains(row_error("\n"), "m.tsv:3: 1 fields"));
  EXPECT_TRUE(contains(row_error(" \ta.wav\t3\tx\n"), "m.tsv:3"));
  for (std::string number : {"", "x", "3x", " 3", "-1", "2.5", "99999999999999999999"})
    EXPECT_TRUE(contains(row_error("b\ta.wav\t" + number + "\tx\n"), "m.tsv:3 (id b): n_frames is '" + number + "'"));
  EXPECT_TRUE(contains(row_error("b\ta.wav\t3\t  \n"), "m.tsv:3 (id b): empty transcript"));
  EXPECT_TRUE(contains(row_error("b\t\t3\tx\n"), "m.tsv:3 (id b): empty audio"));
  EXPECT_TRUE(contains(row_error("ok\ta.wav\t3\tx\n"), "m.tsv:3 (id ok): id was used in line 2"));
  EXPECT_TRUE(contains(row_error("b\ta.wav\t3\t\xff\n"), "m.tsv:3: invalid UTF-8"));
}

TEST_F(ManifestTest, SkippingCountsByReason) {
  std::string file =
      write("m.tsv", kHeader + std::string("a\ta.wav\t3\tx\nb\ta.wav\t3\t\nc\ta.wav\t3\t \nd\ta.wav\tq\tx\ne\n"));
  Manifest m = read_manifest(file, OnError::skip);
  ASSERT_EQ(m.rows.size(), 1u);
  EXPECT_EQ(m.dropped.at("empty_transcript").count, 2);
  EXPECT_EQ(m.dropped.at("bad_n_frames").count, 1);
  EXPECT_EQ(m.dropped.at("wrong_field_count").count, 1);
  EXPECT_TRUE(contains(to_string(m.dropped), "2 empty_transcript (first: " + file + ":3 (id b)"));
  write("m.tsv", kHeader + std::string("a\ta.wav\t3\tx\na\ta.wav\t3\tx\n"));
  EXPECT_THROW(read_manifest(file, OnError::skip), DataError);
}

TEST_F(ManifestTest, PolicyNames) {
  EXPECT_EQ(on_error_from_string("skip"), OnError::skip);
  EXPECT_EQ(on_error_from_string("stop"), OnError::stop);
  EXPECT_THROW(on_error_from_string("ignore"), ConfigError);
}

}  // namespace
}  // namespace tactus
