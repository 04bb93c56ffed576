#include "data/input/kaldi.h"

#include "tests/data/input/input_test_util.h"

namespace tactus {
namespace {

class KaldiTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    std::filesystem::create_directories(path("train"));
    write("train/wav.scp", "rec1 /a/one.wav\nrec2 sox -c 1 -t wavpcm -e signed-integer /a/two.wav -t wavpcm - |\n");
    write("train/segments", "utt1 rec1 0.5 2.25\nutt3 rec2 0 -1\nutt2 rec1 3 4.5\n");
    write("train/text",
          "utt2 SECOND ONE\nutt1 FIRST \xc3\x9c"
          "BER\nutt3\n");
    write("train/utt2spk", "utt1 spk1\nutt2 spk1\n");
    write("train/utt2num_frames", "utt1 173\n");
    options_.format = "kaldi", options_.path = folder_.string();
  }
  std::vector<Item> read(OnError on_error = OnError::stop) {
    reader_ = open_items(options_, "train", on_error);
    return all_items(*reader_);
  }
  std::string error() {
    return message_of<DataError>([&] { read(); });
  }
  InputOptions options_;
  std::unique_ptr<ItemReader> reader_;
};

TEST_F(KaldiTest, SegmentsOfRecordings) {
  const std::vector<Item> items = read();
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].id, "utt1");
  EXPECT_EQ(items[0].media.path, "/a/one.wav");
  EXPECT_EQ(items[0].media.start_seconds, 0.5);
  EXPECT_EQ(items[0].media.duration_seconds, 1.75);
  EXPECT_EQ(items[0].tgt_text,
            "FIRST \xc3\x9c"
            "BER");
  EXPECT_EQ(items[0].speaker, "spk1");
  EXPECT_EQ(items[0].n_frames, 173);
  EXPECT_EQ(items[1].id, "utt3") << "the order of segments";
  EXPECT_EQ(items[1].media.path, "/a/two.wav");
  EXPECT_EQ(items[1].media.duration_seconds, -1);
  EXPECT_EQ(items[1].tgt_text, "");
  EXPECT_EQ(items[1].n_frames, -1);
  EXPECT_TRUE(contains(items[2].where, "segments:3 (id utt2)"));
  EXPECT_TRUE(reader_->dropped().empty());
}

TEST_F(KaldiTest, WholeRecordingsAndTranslations) {
  std::filesystem::remove(path("train/segments"));
  write("train/text", "rec1 ONE\nrec2 TWO\n");
  write("train/text.tc.de", "rec2 Zwei\nrec1 Eins\n");
  options_.source = "text", options_.target = "tc.de";
  const std::vector<Item> items = read();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[1].src_text, "TWO");
  EXPECT_EQ(items[1].tgt_text, "Zwei");
}

TEST_F(KaldiTest, Features) {
  write("train/feats.scp", "utt1 /f/raw.1.ark:123\nutt2 f.ark:9\n");
  options_.audio_root = "/root";
  const std::vector<Item> items = read();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].media.kind, MediaRef::Kind::ark);
  EXPECT_EQ(items[0].media.offset, 123);
  EXPECT_EQ(items[1].media.path, "/root/f.ark");
  EXPECT_EQ(reader_->dropped().at("missing_audio").ids, std::vector<std::string>{"utt3"});
  write("train/feats.scp", "utt1 /f/raw.1.ark:123[0:9]\n");
  EXPECT_TRUE(contains(error(), "row ranges"));
}

TEST_F(KaldiTest, WhatIsMissingIsCounted) {
  write("train/text", "utt1 X\nutt9 Y\nutt8 Z\n");
  write("train/segments", "utt1 rec1 0 1\nutt2 rec1 1 2\nutt8 rec7 1 2\n");
  EXPECT_EQ(read().size(), 1u);
  EXPECT_EQ(reader_->dropped().at("missing_text").ids, std::vector<std::string>{"utt2"});
  EXPECT_EQ(reader_->dropped().at("missing_audio").ids, (std::vector<std::string>{"utt8", "utt9"}));
}

TEST_F(KaldiTest, FaultsNameTheirLine) {
  write("train/segments", "utt1 rec1 2 1\n");
  EXPECT_TRUE(contains(error(), "segments:1 (id utt1): the segment ends at 1"));
  write("train/segments", "utt1 rec1 2\n");
  EXPECT_TRUE(contains(error(), "segments:1 (id utt1): expected UTTERANCE RECORDING START END"));
  write("train/segments", "utt1 rec1 0 1\nutt1 rec1 1 2\n");
  EXPECT_TRUE(contains(error(), "segments:2 (id utt1): listed before"));
  write("train/segments", "utt1 rec1 0 1\n");
  write("train/wav.scp", "rec1 wget -O - http://example.org/a.wav |\n");
  EXPECT_TRUE(contains(error(), "the command 'wget"));
  read(OnError::skip);
  EXPECT_EQ(reader_->dropped().at("bad_audio_reference").count, 1);
  write("train/text", "utt1 X\nutt1 Y\n");
  EXPECT_TRUE(contains(error(), "text:2: 'utt1' was listed before"));
  options_.path = path("nowhere");
  EXPECT_TRUE(contains(error(), "nowhere/train: no such folder"));
}

TEST_F(KaldiTest, CommandsThatOnlyReadAFile) {
  EXPECT_EQ(file_of_wav_entry("/a b.wav"), "/a b.wav");
  EXPECT_EQ(file_of_wav_entry("cat /a.wav |"), "/a.wav");
  EXPECT_EQ(file_of_wav_entry("/usr/bin/flac -c -d -s /a.flac |"), "/a.flac");
  EXPECT_EQ(file_of_wav_entry("sox /a.wav -t wav - |"), "/a.wav");
  for (const char* other : {"cat a.wav b.wav |", "sox a.wav -t wav - speed 1.1 |", "sox a.wav -r 8000 -t wav - |",
                            "sph2pipe -f wav a.sph |", "cat a.wav > b; cat b |", "cat $HOME/a.wav |", "|"})
    EXPECT_EQ(file_of_wav_entry(other), "") << other;
}

TEST_F(KaldiTest, MutatedFiles) {
  const std::string segments = read_text_file(path("train/segments"));
  expect_items_or_data_error(segments, 300, [&](const std::string& bytes) {
    write("train/segments", bytes);
    return read(OnError::stop).size();
  });
}

}  // namespace
}  // namespace tactus
