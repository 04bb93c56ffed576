#include "train/metrics/score.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/error.h"
#include "tests/metrics/corpus.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using testing::kHypotheses;
using testing::kOtherSystem;
using testing::kReferences;
using testing::Lines;
using testing::message_of;

class ScoreFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("tactus_score_" + std::to_string(::getpid()) + "_" + info->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  std::string write_lines(const std::string& name, const Lines& lines) {
    std::string bytes;
    for (const auto& line : lines) bytes += line + "\n";
    return write(name, bytes);
  }

  fs::path folder_;
};

TEST_F(ScoreFiles, PlainText) {
  const auto hyp = write_lines("hyp.txt", kHypotheses), ref = write_lines("ref.txt", kReferences);
  const Scores scores = score_files(hyp, ref, {"wer", "bleu"});
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].name, "wer");
  EXPECT_NEAR(scores[0].value, 32.25806451612903, 1e-9);  // jiwer 4.0.0
  EXPECT_NEAR(scores[1].value, 53.32264676601877, 1e-9);  // sacreBLEU 2.6.0
}

TEST_F(ScoreFiles, ByteOrderMarkWindowsLineEndsAndNoLastNewline) {
  const auto hyp = write("hyp.txt",
                         "\xEF\xBB\xBF"
                         "ab\r\ncd"),
             ref = write("ref.txt", "ab\ncd\n");
  EXPECT_EQ(score_files(hyp, ref, {"accuracy"})[0].value, 100.0);
}

TEST_F(ScoreFiles, EmptyLinesCount) {
  const auto hyp = write("hyp.txt", "\na b\n"), ref = write("ref.txt", "x y\na b\n");
  EXPECT_EQ(score_files(hyp, ref, {"wer"})[0].value, 50.0);
}

TEST_F(ScoreFiles, TablesAreMatchedById) {
  const auto hyp = write("hyp.tsv", "id\thypothesis\tscore\nu2\tcat sat\t-1.5\nu1\tthe dog\t-0.5\nu3\t\t0\n");
  const auto ref = write("ref.tsv",
                         "id\taudio\tsrc_text\ttgt_text\nu1\ta.wav\tx\tthe dog\nu3\tc.wav\ty\tsilence\n"
                         "u2\tb.wav\tz\tcat sits\n");
  const ParallelText texts = read_parallel(hyp, ref);
  EXPECT_EQ(texts.ids, (Lines{"u1", "u3", "u2"}));
  EXPECT_EQ(texts.hypotheses, (Lines{"the dog", "", "cat sat"}));
  EXPECT_EQ(texts.references, (Lines{"the dog", "silence", "cat sits"}));
  EXPECT_EQ(score_files(hyp, ref, {"wer"})[0].value, 40.0);
  ScoreOptions options;
  options.reference_column = "src_text";
  EXPECT_EQ(read_parallel(hyp, ref, options).references, (Lines{"x", "y", "z"}));
}

TEST_F(ScoreFiles, TabsWithoutAnIdColumnArePlainText) {
  const auto hyp = write("hyp.txt", "a\tb\nid\n"), ref = write("ref.txt", "a b\nid\n");
  EXPECT_TRUE(read_parallel(hyp, ref).ids.empty());
  EXPECT_EQ(score_files(hyp, ref, {"bleu"})[0].detail.substr(0, 5), "100.0");
}

TEST_F(ScoreFiles, PlainTextErrors) {
  const auto two = write("two.txt", "a\nb\n"), three = write("three.txt", "a\nb\n\n"), none = write("none.txt", "");
  EXPECT_EQ(message_of<DataError>([&] { score_files(two, three, {"bleu"}); }),
            two + " has 2 lines but " + three + " has 3; they must be equally many");
  EXPECT_EQ(message_of<DataError>([&] { score_files(none, none, {"bleu"}); }),
            none + ": nothing to score, the file holds no segments");
  EXPECT_THROW(score_files(two, (folder_ / "missing").string(), {"bleu"}), DataError);
  const auto bad = write("bad.txt", "a\n\xE4\n");
  EXPECT_EQ(message_of<DataError>([&] { score_files(bad, two, {"bleu"}); }),
            bad + ":2: invalid UTF-8 at byte 1; convert the text to UTF-8");
}

TEST_F(ScoreFiles, UnknownMetricIsFoundBeforeFilesAreRead) {
  EXPECT_THROW(score_files("/nonexistent", "/nonexistent", {"bleu", "chr"}), ConfigError);
  EXPECT_THROW(compare_files("/nonexistent", "/nonexistent", "/nonexistent", {"chr"}), ConfigError);
}

TEST_F(ScoreFiles, TableErrors) {
  const std::string head = "id\ttgt_text\n";
  const auto ref = write("ref.tsv", head + "a\tx\nb\ty\nc\tz\n");
  const auto message = [&](const std::string& hyp_bytes) {
    const auto hyp = write("hyp.tsv", hyp_bytes);
    const std::string text = message_of<DataError>([&] { read_parallel(hyp, ref); });
    return text.starts_with(folder_.string() + "/") ? text.substr(folder_.string().size() + 1) : text;
  };
  EXPECT_EQ(message("id\thypothesis\nb\ty\n"), "hyp.tsv: 2 of the 3 ids in " + ref + " missing: a, c");
  EXPECT_EQ(message("id\thypothesis\na\tx\nb\ty\nc\tz\nd\tw\n"),
            "ref.tsv: 1 of the 4 ids in " + (folder_ / "hyp.tsv").string() + " missing: d");
  EXPECT_EQ(message("id\thypothesis\na\tx\nb\ty\na\tz\n"),
            "hyp.tsv:4: id 'a' again (first on line 2); ids must be unique");
  EXPECT_EQ(message("id\thypothesis\na\tx\nb\n"), "hyp.tsv:3: expected 2 tab-separated fields, got 1");
  EXPECT_EQ(message("id\thypothesis\n\tx\n"), "hyp.tsv:2: empty id");
  EXPECT_EQ(message("id\thyp\na\tx\n"), "hyp.tsv:1: no column 'hypothesis'; found: id, hyp");
  EXPECT_EQ(message("x\ny\nz\n"), "ref.tsv is a table with ids but " + (folder_ / "hyp.tsv").string() +
                                      " is plain text; give two tables or two plain files");
}

TEST_F(ScoreFiles, ManyMissingIdsAreCut) {
  std::string rows = "id\ttgt_text\n";
  for (char c = 'a'; c <= 'g'; ++c) rows += std::string(1, c) + "\tx\n";
  const auto ref = write("ref.tsv", rows), hyp = write("hyp.tsv", "id\thypothesis\na\tx\n");
  EXPECT_EQ(message_of<DataError>([&] { read_parallel(hyp, ref); }),
            hyp + ": 6 of the 7 ids in " + ref + " missing: b, c, d, e, f, ...");
}

TEST_F(ScoreFiles, Compare) {
  const auto ours = write_lines("ours.txt", kHypotheses), theirs = write_lines("theirs.txt", kOtherSystem);
  const auto ref = write_lines("ref.txt", kReferences);
  ScoreOptions options;
  options.resamples = 200;
  options.seed = 7;
  const auto results = compare_files(ours, theirs, ref, {"bleu", "wer"}, options);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].to_string(),
            paired_bootstrap("bleu", kHypotheses, kOtherSystem, kReferences, {}, 200, 7).to_string());
  EXPECT_NEAR(results[1].against.value, 29.032258064516128, 1e-9);  // jiwer 4.0.0
}

}  // namespace
}  // namespace tactus
