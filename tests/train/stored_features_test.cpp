// Features that exist already, from NumPy files to a trained model: frames of several layers, summed with trained
// weights.
#include "data/prepare/prepare.h"
#include "tests/train/run_test_util.h"

namespace tactus {
namespace {

constexpr int kLayers = 3, kWidth = 8;

/// A NumPy array [frames, layers, width] of f4 in which only the second layer tells items apart.
void write_npy(const std::string& path, int64_t frames, int64_t item) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(frames) + ", " +
                       std::to_string(kLayers) + ", " + std::to_string(kWidth) + "), }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff), bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const std::vector<float> signal = toy_frames(item, frames, kWidth), noise = toy_frames(7, frames, kWidth);
  for (int64_t t = 0; t < frames; ++t) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const float* row = (layer == 1 ? signal : noise).data() + t * kWidth;
      bytes.append(reinterpret_cast<const char*>(row), kWidth * sizeof(float));
    }
  }
  std::ofstream(path, std::ios::binary) << bytes;
}

class StoredFeaturesTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    int64_t number = 0;
    for (const auto& [split, count] : {std::pair{"train", 30}, {"dev", 6}}) {
      std::string table = "id\taudio\ttgt_text\n";
      for (int i = 0; i < count; ++i, ++number) {
        const Item item = toy_item(number);
        write_npy(path(item.id + ".npy"), 20 + number * 7 % 30, number);
        table += item.id + "\t" + item.id + ".npy\t" + item.tgt_text + "\n";
      }
      write(std::string(split) + ".tsv", table);
    }
    options_.input.path = folder_.string(), options_.output = path("c.h5");
    options_.splits = {"train", "dev"};
    options_.features.kind = "stored", options_.features.frames_per_second = 50;
    options_.target.vocab_size = 60;
    testing::internal::CaptureStderr();
    prepare(options_);
    testing::internal::GetCapturedStderr();
  }
  PrepareOptions options_;
};

TEST_F(StoredFeaturesTest, LayersAreSummedWithTrainedWeights) {
  Corpus corpus = Corpus::open(path("c.h5"));
  EXPECT_EQ(corpus.features().layers, kLayers);
  EXPECT_EQ(corpus.features().width, kWidth);
  EXPECT_EQ(corpus.split("train")->bins(), kLayers * kWidth);
  const std::vector<std::string> set = {"model.features=" + std::to_string(kLayers * kWidth),
                                        "model.feature_layers=" + std::to_string(kLayers),
                                        "model.feature_projection=6",
                                        "data.cmvn=utterance_mean",
                                        "data.specaugment.time_warp=2",
                                        "ctc_weight=0"};
  train(run_options(path("c.h5"), "max_updates: 20", set), path("run"));
  const auto weights = weights_of(CheckpointFolder(path("run")).model_path(20));
  const std::vector<double>& layers = weights.at("encoder.front_end.layer_weights");
  ASSERT_EQ(layers.size(), static_cast<size_t>(kLayers));
  EXPECT_GT(std::abs(layers[1] - layers[0]), 1e-4) << "they began equal";
  // What one layer gains under softmax the others lose.
  EXPECT_NEAR(layers[0], layers[2], 1e-2);
  EXPECT_EQ(weights.at("encoder.front_end.projection.weight").size(), static_cast<size_t>(6 * kWidth));
}

TEST_F(StoredFeaturesTest, TextIsNoSpeech) {
  write("train.en", "one\ntwo\nthree\n"), write("train.de", "eins\nzwei\ndrei\n");
  PrepareOptions o;
  o.input.format = "text_pair", o.input.path = folder_.string(), o.input.source = "en", o.input.target = "de";
  o.output = path("t.h5"), o.splits = {"train"}, o.features.kind = "none";
  o.target.model = o.source.model = "words";
  testing::internal::CaptureStderr();
  prepare(o);
  testing::internal::GetCapturedStderr();
  const RunOptions run = run_options(path("t.h5"), "max_updates: 1", {"data.valid=train", "ctc_weight=0"});
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { train(run, path("run")); }), "t.h5 holds text"));
}

TEST_F(StoredFeaturesTest, AModelOfAnotherWidthIsRefused) {
  const RunOptions o = run_options(path("c.h5"), "max_updates: 1", {"ctc_weight=0"});
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { train(o, path("run")); }), "has 24 feature bins"));
  const RunOptions odd =
      run_options(path("c.h5"), "max_updates: 1", {"ctc_weight=0", "model.features=24", "model.feature_layers=5"});
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { train(odd, path("run")); }), "5 layers do not divide"));
}

}  // namespace
}  // namespace tactus
