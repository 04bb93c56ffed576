#include "data/corpus/corpus.h"

#include <sys/resource.h>

#include <csignal>

#include "core/half.h"
#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

class CorpusTest : public FolderTest {};

TEST_F(CorpusTest, RoundTrip) {
  std::vector<int64_t> lengths = {7, 1, 30, 12};
  write_toy_corpus(path("c.h5"), lengths);
  Corpus corpus = Corpus::open(path("c.h5"));
  EXPECT_EQ(corpus.split_names(), std::vector<std::string>{"train"});
  EXPECT_EQ(corpus.features().mel_bins, 8);
  EXPECT_EQ(corpus.feature_hash(), options_hash(FeatureOptions{.mel_bins = 8}));
  EXPECT_EQ(corpus.target_tokenizer().size(), 60);
  ASSERT_TRUE(corpus.source_tokenizer().has_value());
  std::shared_ptr<const CorpusSplit> split = corpus.split("train");
  EXPECT_EQ(split, corpus.split("train"));
  ASSERT_EQ(split->size(), 4);
  EXPECT_EQ(split->total_frames(), 50);
  EXPECT_TRUE(split->has_src_tokens());
  for (int64_t i = 0; i < 4; ++i) {
    Item row = toy_item(i);
    EXPECT_EQ(split->id(i), row.id);
    EXPECT_EQ(split->tgt_text(i), row.tgt_text);
    EXPECT_EQ(split->src_text(i), row.src_text);
    EXPECT_EQ(split->speaker(i), row.speaker);
    EXPECT_EQ(split->subset(i), "");
    EXPECT_EQ(corpus.target_tokenizer().decode(split->tgt_tokens()[i]), row.tgt_text);
    EXPECT_EQ(corpus.source_tokenizer()->decode(split->src_tokens()[i]), row.src_text);
    std::vector<float> frames(lengths[i] * 8), expected = toy_frames(i, lengths[i], 8);
    split->read_frames(i, frames.data());
    for (size_t k = 0; k < frames.size(); ++k) ASSERT_EQ(frames[k], float_from_half(half_from_float(expected[k])));
  }
  EXPECT_TRUE(contains(corpus.describe(), "train: 4 items, 50 frames"));
  EXPECT_TRUE(contains(message_of<DataError>([&] { corpus.split("dev"); }), "no split 'dev'; it has: train"));
  EXPECT_EQ(files(), std::vector<std::string>{"c.h5"});
}

/// Columns of the input may have names that mean something to HDF5.
TEST_F(CorpusTest, ExtraColumnsKeepTheirValues) {
  CorpusWriter writer(path("c.h5"), {.features = {.kind = "none"}}, Tokenizer::train({}, {.model = "bytes"}, ""),
                      std::nullopt);
  SplitColumns columns;
  columns.extra = {"a/b", "", ".", "a_b", "plain \xc3\xa4"};
  writer.begin_split("train", columns);
  Item item = toy_item(0);
  item.id = "x/../y", item.extra = {"1", "2", "3", "4", "5"};
  writer.add(item, std::span<const float>());
  writer.end_split(report_json(1, 1, 0, {}));
  writer.commit();
  const auto split = Corpus::open(path("c.h5")).split("train");
  std::map<std::string, std::string> found;
  for (const auto& [name, column] : split->extra()) found[name] = column[0];
  EXPECT_EQ(found, (std::map<std::string, std::string>{
                       {"a_b", "1"}, {"column", "2"}, {"column_", "3"}, {"a_b_", "4"}, {"plain \xc3\xa4", "5"}}));
  EXPECT_EQ(split->id(0), "x/../y");
}

TEST_F(CorpusTest, AnOpenCorpusSurvivesItsReplacement) {
  write_toy_corpus(path("c.h5"), {7, 9});
  Corpus corpus = Corpus::open(path("c.h5"));
  write_toy_corpus(path("c.h5"), {20, 20, 20});
  std::shared_ptr<const CorpusSplit> split = corpus.split("train");
  ASSERT_EQ(split->size(), 2);
  std::vector<float> frames(9 * 8), expected = toy_frames(1, 9, 8);
  split->read_frames(1, frames.data());
  for (size_t k = 0; k < frames.size(); ++k) ASSERT_EQ(frames[k], float_from_half(half_from_float(expected[k])));
}

TEST_F(CorpusTest, CutAnywhereIsOneCleanError) {
  write_toy_corpus(path("c.h5"), {50, 40, 30});
  std::string bytes = read_text_file(path("c.h5"));
  for (int k = 0; k < 40; ++k) {
    std::string file = write("cut.h5", bytes.substr(0, bytes.size() * static_cast<size_t>(k) / 40));
    EXPECT_TRUE(contains(message_of<DataError>([&] { Corpus::open(file).split("train"); }), file));
  }
  std::string file = write("cut.h5", bytes.substr(0, bytes.size() - 1));
  EXPECT_TRUE(contains(message_of<DataError>([&] { Corpus::open(file).split("train"); }), file));
}

/// Damaged bytes either give a DataError or are not noticed; they never crash or hang.
TEST_F(CorpusTest, FlippedBytesNeverCrash) {
  write_toy_corpus(path("c.h5"), {20, 10});
  const std::string bytes = read_text_file(path("c.h5"));
  int refused = 0;
  Rng rng(7);
  for (int k = 0; k < 150; ++k) {
    std::string damaged = bytes;
    for (int n = 0; n < 30; ++n) damaged[rng.below(n < 15 ? 6000 : bytes.size())] = static_cast<char>(rng.next());
    std::string file = write("bad.h5", damaged);
    try {
      Corpus corpus = Corpus::open(file);
      for (const std::string& name : corpus.split_names()) {
        std::shared_ptr<const CorpusSplit> split = corpus.split(name);
        std::vector<float> frames;
        for (int64_t i = 0; i < split->size(); ++i) {
          frames.resize(static_cast<size_t>(split->frames(i) * split->bins()));
          split->read_frames(i, frames.data());
        }
      }
    } catch (const Error& e) {
      ++refused;
      EXPECT_EQ(e.exit_code(), 3) << e.what();
    }
  }
  EXPECT_GT(refused, 75);
}

TEST_F(CorpusTest, OtherFilesAreRefused) {
  h5::replace(path("m.h5"), [](h5::File& f) { f.set_attribute("/", "format", std::string("tactus-model")); });
  EXPECT_TRUE(contains(message_of<DataError>([&] { Corpus::open(path("m.h5")); }), "m.h5: not a corpus"));
  h5::replace(path("n.h5"), [](h5::File& f) {
    f.set_attribute("/", "format", std::string("tactus-corpus"));
    f.set_attribute("/", "version", int64_t{99});
  });
  EXPECT_TRUE(contains(message_of<DataError>([&] { Corpus::open(path("n.h5")); }), "corpus version 99"));
  EXPECT_TRUE(contains(message_of<DataError>([&] { Corpus::open(path("absent.h5")); }), "No such file"));
}

TEST_F(CorpusTest, AnUnfinishedWriterLeavesNothing) {
  Tokenizer target = Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 60}, "toy");
  {
    CorpusWriter writer(path("c.h5"), {.features = {.mel_bins = 4}}, target, std::nullopt);
    writer.begin_split("train", {});
    writer.add(toy_item(0), toy_frames(0, 5, 4));
    std::vector<float> infinite(4, 1e6f);
    EXPECT_TRUE(contains(message_of<DataError>([&] { writer.add(toy_item(1), infinite); }), "utt1"));
    EXPECT_THROW(writer.begin_split("tokenizer", {}), ConfigError);
    EXPECT_THROW(writer.begin_split("a/b", {}), ConfigError);
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(CorpusTest, AFullDiskIsOneCleanError) {
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (rlim_t limit : {rlim_t{1000}, rlim_t{300000}, rlim_t{600000}, rlim_t{1500000}}) {
    rlimit small{limit, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    std::string message = message_of<Error>([&] { write_toy_corpus(path("c.h5"), std::vector<int64_t>(300, 400)); });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_TRUE(contains(message, path("c.h5"))) << message;
    EXPECT_TRUE(files().empty());
  }
  std::signal(SIGXFSZ, previous);
}

TEST_F(CorpusTest, FingerprintsTellOrdersApart) {
  write_toy_corpus(path("a.h5"), {7, 9});
  write_toy_corpus(path("b.h5"), {7, 9});
  write_toy_corpus(path("c.h5"), {9, 7});
  auto fingerprint = [&](const std::string& name) { return Corpus::open(path(name)).split("train")->fingerprint(); };
  EXPECT_EQ(fingerprint("a.h5"), fingerprint("b.h5"));
  EXPECT_NE(fingerprint("a.h5"), fingerprint("c.h5"));
}

}  // namespace
}  // namespace tactus
