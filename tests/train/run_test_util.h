// A tiny corpus and a tiny model, and what tests ask about runs of it.
#pragma once

#include <set>

#include "tests/data/data_test_util.h"
#include "tests/train/process.h"
#include "train/loop/trainer.h"

namespace tactus {

inline constexpr int64_t kBins = 8;

struct ToyCorpus {
  int64_t train = 40, valid = 8, test = 10;
  int64_t vocabulary = 60;
  double low_hz = 20;  ///< changes the feature hash
};

/// Utterances of 20 to 60 frames; the first two of the test split have none, too few for the encoder, and two.
inline std::string write_corpus(const std::string& path, const ToyCorpus& c = {}) {
  CorpusWriter writer(path, {.features = {.mel_bins = kBins, .low_hz = c.low_hz}},
                      Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = c.vocabulary}, "toy"),
                      Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 40}, "toy"));
  int64_t number = 0;
  for (const auto& [name, count] : {std::pair{"train", c.train}, {"dev", c.valid}, {"test", c.test}}) {
    writer.begin_split(name, {.has_src_text = true});
    for (int64_t i = 0; i < count; ++i, ++number) {
      int64_t frames = 20 + number * 17 % 41;
      if (std::string(name) == "test" && i < 2) frames = 2 * i;
      Item row = toy_item(number);
      row.subset = i % 2 ? "odd" : "even";
      writer.add(row, toy_frames(number, frames, kBins));
    }
    writer.end_split(report_json(count, count, 0, {}));
  }
  writer.commit();
  return path;
}

/// A tiny model on that corpus; `train` fills the section of that name ("max_updates: 3, save_every: 1").
inline std::string config_text(const std::string& corpus, const std::string& train) {
  return "seed: 3\ndevice: cpu\nthreads: 1\n"
         "data: {corpus: '" +
         corpus +
         "', batches: {max_frames: 200}, specaugment: {frequency_width: 3, time_width: 8}}\n"
         "model:\n  width: 16\n  features: 8\n"
         "  encoder: {layers: 1, heads: 2, ffn_dim: 24, conv_channels: 16, conv_kernels: [3, 3], dropout: 0.1}\n"
         "  decoder:\n    layers: 1\n    ffn_dim: 24\n    projector_dim: 12\n    dropout: 0.1\n"
         "    attention: {type: mtla, heads: 2, kv_lora_rank: 8, qk_nope_head_dim: 4, qk_rope_head_dim: 4, "
         "v_head_dim: 4}\n"
         "ctc_weight: 0.3\noptimiser: {learning_rate: 0.01, warmup_updates: 8}\n"
         "train: {" +
         train + "}\ndecode: {beam: 3, max_length: 12}\n";
}

inline RunOptions run_options(const std::string& corpus, const std::string& train,
                              const std::vector<std::string>& set = {}) {
  RunOptions o;
  Config::from_text(config_text(corpus, train), "toy", set).read(o);
  return o;
}

inline TrainResult train(const RunOptions& o, const std::string& run) { return Trainer(o, run, {}).run(); }

/// log.jsonl without the clock.
inline std::string repeatable_log(const std::string& run) {
  std::istringstream lines(file_text(run + "/log.jsonl"));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const size_t timing = line.find("\"timing\"");
    EXPECT_EQ(timing == std::string::npos, line.find("\"train\"") == std::string::npos) << line;
    text += line.substr(0, timing) + "\n";
  }
  return text;
}

inline std::string model_bytes(const std::string& run, int64_t update) {
  const std::string bytes = file_text(CheckpointFolder(run).model_path(update));
  EXPECT_GT(bytes.size(), 1000u) << run << " update " << update;
  return bytes;
}

inline std::map<std::string, std::vector<double>> weights_of(const std::string& path) {
  const h5::File file = h5::File::open(path);
  std::map<std::string, std::vector<double>> weights;
  for (const std::string& name : file.list("/weights")) weights[name] = file.read<double>("/weights/" + name);
  return weights;
}

/// Largest |a - b| over all weights.
inline double distance(const std::map<std::string, std::vector<double>>& a,
                       const std::map<std::string, std::vector<double>>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (const auto& [name, values] : a) {
    const std::vector<double>& others = b.at(name);
    EXPECT_EQ(values.size(), others.size());
    for (size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - others[i]));
  }
  return worst;
}

/// Names in the checkpoint folder that a finished save leaves behind by mistake.
inline std::vector<std::string> leftovers(const std::string& run) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.' || name.find(".tmp") != std::string::npos) names.push_back(entry.path().string());
  }
  return names;
}

class RunTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    corpus_ = write_corpus(path("corpus.h5"));
  }
  std::string config(const std::string& train) const { return write("run.yaml", config_text(corpus_, train)); }
  Outcome tactus(const std::vector<std::string>& arguments) const {
    return Process(folder_.string(), arguments).wait();
  }
  std::string corpus_;
};

}  // namespace tactus
