// Readers of data sets as they are released, on miniature trees of the same layout.
#include "data/input/mustc.h"
#include "data/input/slurp.h"
#include "data/input/wmt14.h"
#include "data/input/xsum.h"
#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

class ReleaseTest : public FolderTest {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path(name)).parent_path());
    return write(name, text);
  }
  static std::vector<Item> all(ItemReader& reader) {
    std::vector<Item> items;
    for (Item item; reader.next(item);) items.push_back(item);
    return items;
  }
};

class MustcTest : public ReleaseTest {
 protected:
  void SetUp() override {
    ReleaseTest::SetUp();
    file("en-de/data/dev/txt/dev.yaml",
         "- {duration: 3.500000, offset: 16.080000, rW: 9, uW: 0, speaker_id: spk.767, wav: ted_767.wav}\n"
         "- {duration: 1.25, offset: 20.5, rW: 3, speaker_id: spk.767, wav: ted_767.wav}\n"
         "- {duration: 2, offset: 0, speaker_id: spk.9, wav: ted_9.wav}\n");
    file("en-de/data/dev/txt/dev.en", "Hello there.\nYes.\nA \xe2\x80\xa8 line.\n");
    file("en-de/data/dev/txt/dev.de", "Hallo.\nJa.\nEine Zeile.\n");
    options_.path = path("en-de"), options_.source = "en", options_.target = "de";
  }
  InputOptions options_;
};

TEST_F(MustcTest, SegmentsWithTheirTexts) {
  const auto reader = open_mustc(options_, "dev", OnError::stop);
  EXPECT_TRUE(reader->has_src_text() && reader->has_media());
  const std::vector<Item> items = all(*reader);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].id, "ted_767_0");
  EXPECT_EQ(items[1].id, "ted_767_1");
  EXPECT_EQ(items[2].id, "ted_9_0");
  EXPECT_EQ(items[1].media.path, path("en-de/data/dev/wav/ted_767.wav"));
  EXPECT_EQ(items[1].media.start_seconds, 20.5);
  EXPECT_EQ(items[1].media.duration_seconds, 1.25);
  EXPECT_EQ(items[0].speaker, "spk.767");
  EXPECT_EQ(items[2].src_text, "A \xe2\x80\xa8 line.") << "a line separator inside a sentence ends no line";
  EXPECT_EQ(items[2].tgt_text, "Eine Zeile.");
}

TEST_F(MustcTest, RecognitionTakesOneLanguage) {
  options_.target = "en";
  EXPECT_EQ(all(*open_mustc(options_, "dev", OnError::stop))[1].tgt_text, "Yes.");
  options_.target = "";
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { open_mustc(options_, "dev", OnError::stop); }), "input.target"));
}

TEST_F(MustcTest, FilesThatDoNotGoTogether) {
  file("en-de/data/dev/txt/dev.de", "Hallo.\nJa.\n");
  auto read = [&](OnError on_error) { return all(*open_mustc(options_, "dev", on_error)); };
  const std::string message = message_of<DataError>([&] { read(OnError::skip); });
  EXPECT_TRUE(contains(message, "dev.yaml:3") && contains(message, "dev.de (line 2)")) << message;
  EXPECT_TRUE(contains(message_of<DataError>([&] { open_mustc(options_, "train", OnError::stop); }), "train.yaml"));
}

TEST_F(MustcTest, BadSegmentsStopOrAreCounted) {
  file("en-de/data/dev/txt/dev.yaml",
       "- {duration: x, offset: 1, wav: a.wav}\n- {offset: 1, wav: a.wav}\n- {duration: -1, offset: 1, wav: a.wav}\n");
  const auto reader = open_mustc(options_, "dev", OnError::skip);
  EXPECT_TRUE(all(*reader).empty());
  EXPECT_EQ(reader->dropped().at("bad_segment").count, 3);
  EXPECT_TRUE(contains(message_of<DataError>([&] { all(*open_mustc(options_, "dev", OnError::stop)); }), "dev.yaml:1"));
}

class SlurpTest : public ReleaseTest {
 protected:
  void SetUp() override {
    ReleaseTest::SetUp();
    file("s/train.jsonl",
         R"({"slurp_id": 13804, "sentence": "Mail me@home, now. #fun", "scenario": "email", "action": "sendemail", )"
         R"("intent": "email_sendemail", "recordings": [{"file": "audio-1.flac", "wer": 0.0}, )"
         R"({"file": "audio-1-headset.flac"}], "entities": []})"
         "\n");
    file("s/train_synthetic.jsonl",
         R"({"slurp_id": "7", "sentence": "Play JAZZ", "scenario": "play", "action": "music", )"
         R"("recordings": [{"file": "audio-7.flac"}]})"
         "\n");
    options_.path = path("s"), options_.audio_root = path("a");
  }
  InputOptions options_;
};

TEST_F(SlurpTest, EveryRecordingIsAnItem) {
  const auto reader = open_slurp(options_, "train", OnError::stop);
  const std::vector<Item> items = all(*reader);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].id, "13804-audio-1");
  EXPECT_EQ(items[1].id, "13804-audio-1-headset");
  EXPECT_EQ(items[0].src_text, "Mail me at home now hashtag fun");
  EXPECT_EQ(items[0].tgt_text, "email_sendemail Mail me at home now hashtag fun");
  EXPECT_EQ(items[0].media.path, path("a/slurp_real/audio-1.flac"));
  EXPECT_EQ(items[0].extra, (std::vector<std::string>{"13804", "email_sendemail"}));
  EXPECT_EQ(items[2].tgt_text, "play_music play jazz");
  EXPECT_EQ(items[2].subset, "synthetic");
  EXPECT_EQ(items[2].media.path, path("a/slurp_synth/audio-7.flac"));
  EXPECT_EQ(all(*open_slurp(options_, "train_real", OnError::stop)).size(), 2u);
}

TEST_F(SlurpTest, DamagedLines) {
  file("s/devel.jsonl", "{\"slurp_id\": 1}\n{\"slurp");
  const auto reader = open_slurp(options_, "devel", OnError::skip);
  EXPECT_TRUE(all(*reader).empty());
  EXPECT_EQ(reader->dropped().at("bad_line").count, 2);
  const std::string message = message_of<DataError>([&] { all(*open_slurp(options_, "devel", OnError::stop)); });
  EXPECT_TRUE(contains(message, "devel.jsonl:1") && contains(message, "no member")) << message;
  EXPECT_TRUE(contains(message_of<DataError>([&] { open_slurp(options_, "test", OnError::stop); }), "test.jsonl"));
}

class XsumTest : public ReleaseTest {
 protected:
  void SetUp() override {
    ReleaseTest::SetUp();
    file("x/XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json",
         R"({"train": ["11", "12", "13"], "validation": [], "test": []})");
    file("x/bbc-summary-data/11.summary",
         "[SN]URL[SN]\nhttp://example.org/11\n\n[SN]TITLE[SN]\nTitle\n\n[SN]FIRST-SENTENCE[SN]\n One  thing "
         "happened.\n\n"
         "[SN]RESTBODY[SN]\nIt was\ta thing.\n\nAnd more.\n");
    file("x/bbc-summary-data/12.summary", "[SN]URL[SN]\nhttp://example.org/12\n[SN]RESTBODY[SN]\nText.\n");
    options_.path = path("x");
  }
  InputOptions options_;
};

TEST_F(XsumTest, BodyAndFirstSentence) {
  const auto reader = open_xsum(options_, "train", OnError::skip);
  EXPECT_EQ(reader->total(), 3);
  const std::vector<Item> items = all(*reader);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].id, "11");
  EXPECT_EQ(items[0].tgt_text, "One thing happened.");
  EXPECT_EQ(items[0].src_text, "It was a thing. And more.");
  EXPECT_EQ(reader->dropped().at("bad_article").ids, std::vector<std::string>{"12"});
  EXPECT_EQ(reader->dropped().at("missing_article").ids, std::vector<std::string>{"13"});
  EXPECT_TRUE(all(*open_xsum(options_, "dev", OnError::stop)).empty());
}

TEST_F(XsumTest, Faults) {
  auto read = [&] { return all(*open_xsum(options_, "train", OnError::stop)); };
  EXPECT_TRUE(contains(message_of<DataError>(read), "lacks the section FIRST-SENTENCE"));
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { open_xsum(options_, "other", OnError::stop); }), "no split 'other'"));
  options_.path = path("nowhere");
  EXPECT_TRUE(contains(message_of<DataError>(read), "XSum-TRAINING-DEV-TEST-SPLIT"));
}

class WmtTest : public ReleaseTest {
 protected:
  void SetUp() override {
    ReleaseTest::SetUp();
    file("w/training/europarl-v7.de-en.en", "One.\nTwo.\n");
    file("w/training/europarl-v7.de-en.de", "Eins.\nZwei.\n");
    file("w/commoncrawl.de-en.en", "Three.\n");
    file("w/commoncrawl.de-en.de", "Drei.\n");
    file("w/commoncrawl.fr-en.en", "Other.\n");
    file("w/dev/newstest2013.en", "Dev.\n");
    file("w/dev/newstest2013.de", "Entwicklung.\n");
    file("w/test/newstest2014-deen-src.en.sgm",
         "<srcset setid=\"x\">\n<doc>\n<p>\n<seg id=\"1\">A &amp; B &lt;c&gt;</seg>\n<seg id=\"2\"> two "
         "</seg>\n</p></doc>");
    file("w/test/newstest2014-deen-ref.de.sgm", "<seg id=\"1\">A und B</seg><seg id=\"2\">zwei</seg>");
    options_.path = path("w");
  }
  InputOptions options_;
};

TEST_F(WmtTest, CorporaAndTestSets) {
  const std::vector<Item> train = all(*open_wmt14(options_, "train", OnError::stop));
  ASSERT_EQ(train.size(), 3u);
  EXPECT_EQ(train[0].id, "commoncrawl.de-en-1");
  EXPECT_EQ(train[2].id, "europarl-v7.de-en-2");
  EXPECT_EQ(train[2].src_text, "Two.");
  EXPECT_EQ(train[2].tgt_text, "Zwei.");
  EXPECT_EQ(train[2].subset, "europarl-v7.de-en");
  EXPECT_EQ(all(*open_wmt14(options_, "newstest2013", OnError::stop)).at(0).tgt_text, "Entwicklung.");
  const std::vector<Item> test = all(*open_wmt14(options_, "newstest2014", OnError::stop));
  ASSERT_EQ(test.size(), 2u);
  EXPECT_EQ(test[0].src_text, "A & B <c>");
  EXPECT_EQ(test[1].src_text, "two");
  EXPECT_EQ(test[1].tgt_text, "zwei");
}

TEST_F(WmtTest, Faults) {
  file("w/training/europarl-v7.de-en.de", "Eins.\n");
  EXPECT_TRUE(contains(message_of<DataError>([&] { all(*open_wmt14(options_, "train", OnError::stop)); }),
                       "different numbers of lines"));
  EXPECT_TRUE(contains(message_of<DataError>([&] { open_wmt14(options_, "newstest2099", OnError::stop); }),
                       "no newstest2099.en"));
  file("w/test/cut-src.en.sgm", "<seg id=\"1\">never ends");
  file("w/test/cut-ref.de.sgm", "<seg id=\"1\">endet</seg>");
  EXPECT_TRUE(contains(message_of<DataError>([&] { all(*open_wmt14(options_, "cut", OnError::stop)); }), "segment 1"));
  options_.path = path("en-de");
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { open_wmt14(options_, "train", OnError::stop); }), "no training pairs"));
}

}  // namespace
}  // namespace tactus
