#include "data/input/manifest.h"

#include "tests/data/data_test_util.h"
#include "tests/data/input/input_test_util.h"

namespace tactus {
namespace {

class ManifestTest : public FolderTest {
 protected:
  InputOptions options(const std::string& format = "manifest") const {
    InputOptions o;
    o.format = format, o.path = folder_.string();
    return o;
  }
  std::vector<Item> read(const std::string& text, OnError on_error = OnError::stop) {
    write("m.tsv", text);
    return all_items(*open_items(options(), "m", on_error));
  }
  std::string error(const std::string& text) {
    std::string message = message_of<DataError>([&] { read(text); });
    EXPECT_TRUE(contains(message, path("m.tsv"))) << message;
    return message;
  }
};

TEST_F(ManifestTest, ColumnsAreFoundByName) {
  write("m.tsv",
        "tgt_text\tnote\tid\tn_frames\taudio\tspeaker\tlength\n"
        "halb zehn\tx\ta1\t120\twav/a.flac\tbob\t1.2\r\n"
        "\"zehn\" Uhr \\n\t\ta2\t0\t/abs/b.flac\t\t\n");
  const auto reader = open_items(options(), "m", OnError::stop);
  EXPECT_EQ(reader->extra_columns(), (std::vector<std::string>{"note", "length"}));
  EXPECT_FALSE(reader->has_src_text());
  EXPECT_TRUE(reader->has_media());
  EXPECT_EQ(reader->total(), 2);
  const std::vector<Item> items = all_items(*reader);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].id, "a1");
  EXPECT_EQ(items[0].n_frames, 120);
  EXPECT_EQ(items[0].tgt_text, "halb zehn");
  EXPECT_EQ(items[0].speaker, "bob");
  EXPECT_EQ(items[0].extra, (std::vector<std::string>{"x", "1.2"}));
  EXPECT_EQ(items[1].tgt_text, "\"zehn\" Uhr \\n");
  EXPECT_EQ(items[1].extra, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(items[0].media.path, path("wav/a.flac"));
  EXPECT_EQ(items[1].media.path, "/abs/b.flac");
  EXPECT_EQ(items[1].where, path("m.tsv") + ":3 (id a2)");
}

TEST_F(ManifestTest, TextAloneNeedsNoAudio) {
  const std::vector<Item> items = read("id\tsrc_text\tsrc2_text\ttgt_text\nx\ta\tb\tc\n\xc3\xa4\t\t \t\n");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].media.kind, MediaRef::Kind::none);
  EXPECT_EQ(items[0].src2_text, "b");
  EXPECT_EQ(items[1].tgt_text, "") << "blank text is no fault of the line";
}

TEST_F(ManifestTest, SegmentsAndPlacesOfFeatures) {
  const std::string header = "id\taudio\tstart\tduration\ttgt_text\n";
  const std::vector<Item> items = read(header +
                                       "a\tlong.wav\t12.5\t3.25\tx\n"
                                       "b\tlong.wav\t\t\tx\n"
                                       "c\tf/a.ark:1234\t\t\tx\n"
                                       "d\tf.h5:group/name\t\t\tx\n"
                                       "e\tm.npy\t\t\tx\n");
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(items[0].media.start_seconds, 12.5);
  EXPECT_EQ(items[0].media.duration_seconds, 3.25);
  EXPECT_EQ(items[1].media.duration_seconds, -1);
  EXPECT_EQ(items[2].media.kind, MediaRef::Kind::ark);
  EXPECT_EQ(items[2].media.offset, 1234);
  EXPECT_EQ(items[2].media.path, path("f/a.ark"));
  EXPECT_EQ(items[3].media.kind, MediaRef::Kind::hdf5);
  EXPECT_EQ(items[3].media.dataset, "group/name");
  EXPECT_EQ(items[4].media.kind, MediaRef::Kind::npy);
  EXPECT_TRUE(contains(error(header + "a\tlong.wav\t-1\t3\tx\n"), "m.tsv:2 (id a): start is '-1'"));
  EXPECT_TRUE(contains(error(header + "a\tlong.wav\t1\tnan\tx\n"), "duration is 'nan'"));
  EXPECT_TRUE(contains(error(header + "a\tf.ark:x\t\t\tx\n"), "expected FILE.ark:OFFSET"));
}

/// fairseq's speech-to-text tables: byte ranges of a zip, and a backslash before a tab or a backslash of the text.
TEST_F(ManifestTest, FairseqTables) {
  write("f.zip", std::string("??\x93NUMPY......RIFF"));
  write("train.tsv",
        "id\taudio\tn_frames\ttgt_text\tspeaker\ttgt_lang\n"
        "ted_1_0\tf.zip:2:12\t161\tA\\\tb \\\\ \"c\"\tspk.1\tde\n");
  InputOptions o = options("fairseq_tsv");
  const auto reader = open_items(o, "train", OnError::stop);
  EXPECT_EQ(reader->extra_columns(), std::vector<std::string>{"tgt_lang"});
  const std::vector<Item> items = all_items(*reader);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].tgt_text, "A\tb \\ \"c\"");
  EXPECT_EQ(items[0].media.kind, MediaRef::Kind::npy);
  EXPECT_EQ(items[0].media.offset, 2);
  EXPECT_EQ(items[0].media.bytes, 12);
  o.audio_root = "/other";
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { all_items(*open_items(o, "train", OnError::stop)); }), "/other/f.zip"));
}

TEST_F(ManifestTest, HeaderErrors) {
  EXPECT_TRUE(contains(error(""), "empty file"));
  EXPECT_TRUE(
      contains(error("id\taudio\tsrc_text\n"), "m.tsv:1: column 'tgt_text' is missing; the header has: id, audio"));
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
  EXPECT_TRUE(contains(row_error("b\t\t3\tx\n"), "m.tsv:3 (id b): empty audio"));
  EXPECT_TRUE(contains(row_error("ok\ta.wav\t3\tx\n"), "m.tsv:3 (id ok): id was used in line 2"));
  EXPECT_TRUE(contains(row_error("b\ta.wav\t3\t\xff\n"), "m.tsv:3: invalid UTF-8"));
}

TEST_F(ManifestTest, SkippingCountsByReason) {
  write("m.tsv", kHeader + std::string("a\ta.wav\t3\tx\nb\t\t3\ty\nc\t \t3\tz\nd\ta.wav\tq\tx\ne\n"));
  const auto reader = open_items(options(), "m", OnError::skip);
  EXPECT_EQ(all_items(*reader).size(), 1u);
  EXPECT_EQ(reader->dropped().at("empty_audio").count, 2);
  EXPECT_EQ(reader->dropped().at("bad_n_frames").count, 1);
  EXPECT_EQ(reader->dropped().at("wrong_field_count").ids, std::vector<std::string>{"line 6"});
  EXPECT_TRUE(contains(to_string(reader->dropped()), "2 empty_audio (b, c; first: " + path("m.tsv") + ":3 (id b)"));
  EXPECT_THROW(read(kHeader + std::string("a\ta.wav\t3\tx\na\ta.wav\t3\tx\n"), OnError::skip), DataError);
}

TEST_F(ManifestTest, InvalidBytesMayBeReplaced) {
  write("m.tsv",
        "id\ttgt_text\na\tx\xff"
        "y\nb\t\xe2\x82\n");
  InputOptions o = options();
  o.invalid_utf8 = "replace";
  const auto reader = open_items(o, "m", OnError::stop);
  const std::vector<Item> items = all_items(*reader);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].tgt_text, "x\xef\xbf\xbdy");
  EXPECT_EQ(items[1].tgt_text, "\xef\xbf\xbd");
  EXPECT_EQ(reader->replaced_bytes(), 3);
}

TEST_F(ManifestTest, PolicyNamesAndFormats) {
  EXPECT_EQ(on_error_from_string("skip"), OnError::skip);
  EXPECT_EQ(on_error_from_string("stop"), OnError::stop);
  EXPECT_THROW(on_error_from_string("ignore"), ConfigError);
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { open_items(options("manifset"), "m", OnError::stop); }),
                       "did you mean 'manifest'"));
}

TEST_F(ManifestTest, MutatedFiles) {
  const std::string good =
      kHeader + std::string("a\ta.wav\t3\tx\nb\tz.zip:0:9\t3\t\xc3\xa4\nc\tc.ark:77\t12\tlast one\n");
  write("z.zip", "RIFF....WAVE");
  expect_items_or_data_error(good, 400, [&](const std::string& bytes) { return read(bytes, OnError::skip).size(); });
}

}  // namespace
}  // namespace tactus
