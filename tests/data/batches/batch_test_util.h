// Corpora for tests of batches, and how batches are compared.
#pragma once

#include <bit>

#include "data/batches/batch.h"
#include "tests/data/data_test_util.h"

namespace tactus {

/// Lengths between 5 and 94.
inline std::vector<int64_t> varied_lengths(int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) lengths.push_back(5 + i * 37 % 90);
  return lengths;
}

inline std::vector<int32_t> items(const BatchPlan& plan, int64_t number) {
  const auto batch = plan.batch(number);
  return {batch.begin(), batch.end()};
}

/// A corpus of text with the given numbers of words in source, target and (where given) second source.
struct TextLengths {
  int64_t source = 0, target = 0, second = -1;
};
inline void write_text_corpus(const std::string& file, const std::vector<TextLengths>& lengths) {
  const TokenizerOptions options{.model = "unigram", .vocab_size = 60};
  const Tokenizer tokenizer = Tokenizer::train(toy_sentences(), options, "toy");
  CorpusOptions corpus;
  corpus.features.kind = "none";
  CorpusWriter writer(file, corpus, tokenizer, tokenizer);
  SplitColumns columns;
  columns.has_src_text = true;
  columns.has_src2_text = !lengths.empty() && lengths.front().second >= 0;
  writer.begin_split("train", columns);
  for (size_t i = 0; i < lengths.size(); ++i) {
    Item item;
    item.id = "text" + std::to_string(i);
    EncodedItem encoded;
    for (int64_t k = 0; k < lengths[i].source; ++k) encoded.src_tokens.push_back(static_cast<int32_t>(4 + k % 50));
    for (int64_t k = 0; k < lengths[i].second; ++k) encoded.src2_tokens.push_back(static_cast<int32_t>(54 - k % 50));
    for (int64_t k = 0; k < lengths[i].target; ++k) encoded.tgt_tokens.push_back(static_cast<int32_t>(5 + k % 50));
    writer.add(item, encoded);
  }
  const auto count = static_cast<int64_t>(lengths.size());
  writer.end_split(report_json(count, count, 0, {}));
  writer.commit();
}

/// Features as floats, whatever their type.
inline std::vector<float> features_of(const Batch& b) {
  const int64_t n = b.frames() * b.bins;
  std::vector<float> out(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    out[k] = b.dtype == DType::f32    ? b.features.as<float>()[k]
             : b.dtype == DType::bf16 ? static_cast<float>(b.features.as<bf16>()[k])
                                      : static_cast<float>(b.features.as<double>()[k]);
  }
  return out;
}

/// A number for every bit of a batch.
inline uint64_t batch_hash(const Batch& b) {
  uint64_t h = mix_key(mix_key(static_cast<uint64_t>(b.epoch), static_cast<uint64_t>(b.index)), size_of(b.dtype));
  const auto add = [&h](const auto& values) {
    h = mix_key(h, values.size());
    for (const auto& v : values) h = mix_key(h, static_cast<uint64_t>(v));
  };
  const auto add_texts = [&h](const std::vector<std::string_view>& texts) {
    for (std::string_view t : texts) h = mix_key(h, hash_path(t));
  };
  add(b.utterances), add(b.frame_lengths), add(b.source_lengths), add(b.source2_lengths), add(b.source_tokens);
  add(b.source2_tokens), add(b.target_lengths), add(b.previous_tokens), add(b.target_tokens);
  add(b.ctc_lengths), add(b.ctc_tokens);
  add_texts(b.ids), add_texts(b.src_text), add_texts(b.tgt_text);
  return mix_key(h, hash_path({b.features.as<char>(), static_cast<size_t>(b.features.bytes())}));
}

}  // namespace tactus
