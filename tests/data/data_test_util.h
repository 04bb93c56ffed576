// Shared by the tests of data/.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "data/corpus/corpus_writer.h"

namespace tactus {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The message of the exception of type E that f throws, which must be one line.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    std::string text = e.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

/// A test with a folder of its own that is removed at the end.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("tactus_" + std::string(info->test_suite_name()) + "_" + info->name() + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    // Some file systems flush a file to disk when it is emptied and written again; a new one costs nothing.
    std::filesystem::remove(path(name));
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    return names;
  }
  std::filesystem::path folder_;
};

/// Text with enough different words for some dozens of pieces.
inline std::vector<std::string> toy_sentences() {
  const std::vector<std::string> numbers = {"one", "two",   "three", "four", "five",
                                            "six", "seven", "eight", "nine", "ten"};
  const std::vector<std::string> goods = {"coffee", "bread",  "apples", "tickets", "window",  "morning",
                                          "bottle", "garden", "yellow", "quarter", "january", "exactly"};
  std::vector<std::string> sentences;
  for (size_t a = 0; a < numbers.size(); ++a) {
    for (size_t b = 0; b < goods.size(); ++b) {
      sentences.push_back(numbers[a] + " minutes past " + numbers[(a * 3 + b) % 10] + ", " + goods[b] + " and " +
                          goods[(a + 5 * b + 1) % 12] + " please");
    }
  }
  return sentences;
}

inline Item toy_item(int64_t i) {
  Item row;
  std::vector<std::string> sentences = toy_sentences();
  row.id = "utt" + std::to_string(i);
  row.tgt_text = sentences[i % sentences.size()];
  row.src_text = sentences[(i * 7 + 3) % sentences.size()];
  row.speaker = "speaker" + std::to_string(i % 3);
  return row;
}

inline std::vector<float> toy_frames(int64_t i, int64_t rows, int64_t bins) {
  Rng rng(mix_key(99, static_cast<uint64_t>(i)));
  std::vector<float> frames(static_cast<size_t>(rows * bins));
  for (float& x : frames) x = static_cast<float>(10 + 4 * rng.normal());
  return frames;
}

/// Writes a corpus whose train split has one utterance for each length.
inline void write_toy_corpus(const std::string& file, const std::vector<int64_t>& lengths, int64_t bins = 8,
                             bool with_source = true) {
  Tokenizer target = Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 60}, "toy");
  std::optional<Tokenizer> source;
  if (with_source) source = Tokenizer::train(toy_sentences(), {.model = "unigram", .vocab_size = 40}, "toy");
  CorpusWriter writer(file, {.features = {.mel_bins = bins}}, target, source);
  writer.begin_split("train", {.has_src_text = true});
  for (size_t i = 0; i < lengths.size(); ++i)
    writer.add(toy_item(static_cast<int64_t>(i)), toy_frames(static_cast<int64_t>(i), lengths[i], bins));
  writer.end_split(report_json(static_cast<int64_t>(lengths.size()), static_cast<int64_t>(lengths.size()), 0, {}));
  writer.commit();
}

}  // namespace tactus
