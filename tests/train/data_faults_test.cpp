// Faults of data that show in training, each by the symptom it has been reported with.
#include "tests/train/run_test_util.h"
#include "train/loop/train_data.h"

namespace tactus {
namespace {

using DataFaults = RunTest;

/// A corpus of one split "train" whose second bin never changes.
void write_flat_bin(const std::string& path) {
  const TokenizerOptions words{.model = "unigram", .vocab_size = 60};
  CorpusWriter writer(path, {.features = {.mel_bins = kBins}}, Tokenizer::train(toy_sentences(), words, "toy"), {});
  for (const char* name : {"train", "dev"}) {
    writer.begin_split(name, {});
    for (int64_t i = 0; i < 12; ++i) {
      std::vector<float> frames = toy_frames(i, 30, kBins);
      for (size_t at = 1; at < frames.size(); at += kBins) frames[at] = 5;
      writer.add(toy_item(i), frames);
    }
    writer.end_split(report_json(12, 12, 0, {}));
  }
  writer.commit();
}

/// Garbage results from a bin without variance: it is centred, said, and training stays finite.
TEST_F(DataFaults, BinsWithoutVarianceAreSaidAndStayFinite) {
  write_flat_bin(path("flat.h5"));
  for (const char* cmvn : {"global", "utterance"}) {
    RunOptions o =
        run_options(path("flat.h5"), "max_updates: 3", {"data.cmvn=" + std::string(cmvn), "ctc_target=target"});
    testing::internal::CaptureStderr();
    const TrainResult r = train(o, path(cmvn));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(contains(said, "1 bins have no variance and are only centred: 1"), std::string(cmvn) == "global") << said;
    EXPECT_EQ(r.updates, 3);
    for (const auto& [name, values] : weights_of(CheckpointFolder(path(cmvn)).model_path(3))) {
      for (double v : values) ASSERT_TRUE(std::isfinite(v)) << name;
    }
  }
  RunOptions o = run_options(path("flat.h5"), "", {"data.cmvn=global", "data.cmvn_stats=" + path("none.h5")});
  EXPECT_TRUE(contains(message_of<DataError>([&] { TrainData::open(o.data, 1); }), path("none.h5")));
  write_statistics(path("wide.h5"), Corpus::open(path("flat.h5")).feature_hash(),
                   {10, std::vector<double>(80, 1.0), std::vector<double>(80, 2.0)});
  o.data.cmvn_stats = path("wide.h5");
  EXPECT_TRUE(contains(message_of<DataError>([&] { TrainData::open(o.data, 1); }), "80 numbers, frames have 8"));
}

/// Corpora whose tokenizers have one size and other pieces cannot be mixed.
TEST_F(DataFaults, TokenizersOfOneSizeAreToldApart) {
  std::vector<std::string> fewer = toy_sentences();
  fewer.resize(100);
  const Tokenizer a = Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 60}, "a");
  const Tokenizer b = Tokenizer::train(fewer, {.model = "unigram", .vocab_size = 60}, "b");
  ASSERT_EQ(a.size(), b.size());
  ASSERT_NE(a.hash(), b.hash());
  CorpusWriter writer(path("b.h5"), {.features = {.mel_bins = kBins}}, b,
                      Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 40}, "toy"));
  writer.begin_split("train", {.has_src_text = true});
  writer.add(toy_item(0), toy_frames(0, 30, kBins));
  writer.end_split(report_json(1, 1, 0, {}));
  writer.commit();
  const RunOptions o = run_options(corpus_, "", {"data.mix={b: {corpus: '" + path("b.h5") + "'}}"});
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { TrainData::open(o.data, 1); }), "different target tokenizers"));
}

}  // namespace
}  // namespace tactus
