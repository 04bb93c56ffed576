// Corpora: everything training needs in one HDF5 file, so that no audio library and no text processing is needed later.
//
//   /                      attributes: format, version, features (YAML), feature_hash, store
//   /tokenizer/target      u8: tokenizer; /tokenizer/source likewise where there is one
//   /SPLIT                 attributes: has_src_text, report (JSON: items, kept, dropped by reason with first ids)
//   /SPLIT/frames          f16 or f32 [frames, width], contiguous: raw features of all items end to end; absent for text
//   /SPLIT/frame_offsets   i64 [items + 1]; all 0 for text
//   /SPLIT/moments         f64 [2, width]: sum and sum of squares of the frames, for global normalisation
//   /SPLIT/COLUMN/{bytes,offsets}
//                          id, src_text, src2_text, tgt_text, speaker, subset, media, extra.NAME: UTF-8 end to end
//   /SPLIT/{tgt,src,src2}_tokens/{ids,offsets}
//                          without <s> and </s>; u8, u16 or i32 by size of the vocabulary
//
// Opening a split maps the tables into memory: their pages come from the page cache as they are touched and can be
// given back, so that a corpus may be larger than memory. Frames are read by file offset, which needs no lock.
//
// Raw features are stored and normalised at load: 16-bit log-mel values have exact sums in double, so what a model sees
// is the same on every machine, and the normalisation may change without a new corpus.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/files.h"
#include "core/files/h5.h"
#include "data/features.h"
#include "data/item.h"
#include "data/text/tokenizer.h"

namespace tactus {

class FeatureExtractor;

/// A column of texts in a mapped file. DataError where its offsets are damaged.
class TextColumn {
 public:
  int64_t size() const { return rows_; }
  std::string_view operator[](int64_t i) const;

 private:
  friend class SplitReader;
  const int64_t* offsets_ = nullptr;
  const char* values_ = nullptr;
  int64_t rows_ = 0, end_ = 0;
  std::string where_;
};

/// A column of token sequences in a mapped file, stored in 1, 2 or 4 bytes each.
class TokenColumn {
 public:
  int64_t size() const { return rows_; }
  int64_t length(int64_t i) const { return offsets_[i + 1] - offsets_[i]; }
  int64_t total() const { return end_; }
  /// Appends the tokens of row i to `out`. DataError for an id outside the vocabulary.
  void append(int64_t i, std::vector<int32_t>& out) const;
  std::vector<int32_t> operator[](int64_t i) const;

 private:
  friend class SplitReader;
  const int64_t* offsets_ = nullptr;
  const uint8_t* ids_ = nullptr;
  int64_t rows_ = 0, end_ = 0;
  int64_t bytes_ = 4;
  int32_t vocabulary_ = 0;
  std::string where_;
};

/// Sum and sum of squares of each number of a frame over a split.
struct FeatureMoments {
  int64_t frames = 0;
  std::vector<double> sum, squares;
};

/// One split of an open corpus. Immutable; every method may be called from any thread. Views stay valid while the split
/// lives.
class CorpusSplit {
 public:
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  int64_t size() const { return id_.size(); }
  /// Numbers in a frame; 0 where the items are text.
  int64_t bins() const { return bins_; }
  bool has_frames() const { return bins_ > 0; }
  int64_t frames(int64_t i) const { return frame_offsets_[i + 1] - frame_offsets_[i]; }
  int64_t total_frames() const { return frame_offsets_[size()]; }
  std::string_view id(int64_t i) const { return id_[i]; }
  std::string_view src_text(int64_t i) const { return src_text_[i]; }
  std::string_view src2_text(int64_t i) const { return src2_text_[i]; }
  std::string_view tgt_text(int64_t i) const { return tgt_text_[i]; }
  std::string_view speaker(int64_t i) const { return speaker_[i]; }
  std::string_view subset(int64_t i) const { return subset_[i]; }
  /// Columns of the input that mean nothing to Tactus, kept as they were.
  const std::map<std::string, TextColumn>& extra() const { return extra_; }
  const TokenColumn& tgt_tokens() const { return tgt_tokens_; }
  const TokenColumn& src_tokens() const { return src_tokens_; }
  const TokenColumn& src2_tokens() const { return src2_tokens_; }
  bool has_src_text() const { return has_src_text_; }
  bool has_src_tokens() const { return src_tokens_.size() > 0; }
  bool has_src2_tokens() const { return src2_tokens_.size() > 0; }
  const FeatureMoments& moments() const { return moments_; }
  int64_t dropped() const { return dropped_; }
  int64_t unknown_tokens() const { return unknown_tokens_; }
  const std::string& dropped_reasons() const { return dropped_reasons_; }
  /// Reads the raw frames of item i to `out` [frames(i), bins()]: one read of the file, or the computation of features
  /// from audio for a corpus that stores none. DataError when the audio has changed since.
  void read_frames(int64_t i, float* out) const;
  bool computes_frames() const { return extractor_ != nullptr; }
  /// Hash of ids and lengths: two splits with the same one are visited in the same order.
  std::string fingerprint() const;

 private:
  friend class SplitReader;
  std::string name_, path_;
  int64_t bins_ = 0, raw_offset_ = -1, frame_bytes_ = 2;
  const int64_t* frame_offsets_ = nullptr;
  TextColumn id_, src_text_, src2_text_, tgt_text_, speaker_, subset_, media_;
  std::map<std::string, TextColumn> extra_;
  TokenColumn tgt_tokens_, src_tokens_, src2_tokens_;
  FeatureMoments moments_;
  bool has_src_text_ = false;
  int64_t dropped_ = 0, unknown_tokens_ = 0;
  std::string dropped_reasons_;
  std::shared_ptr<const FeatureExtractor> extractor_;
  std::shared_ptr<const FileDescriptor> file_;
  std::shared_ptr<const MappedFile> map_;
};

/// An open corpus file. Opening reads a few hundred bytes and the tokenizers; a split is mapped when it is first asked
/// for. A damaged file is a DataError naming it. split() is for one thread at a time (the HDF5 library has no locks).
class Corpus {
 public:
  static Corpus open(const std::string& path);
  const std::string& path() const { return file_.path(); }
  const std::vector<std::string>& split_names() const { return split_names_; }
  /// DataError naming the splits there are when `name` is not one of them.
  std::shared_ptr<const CorpusSplit> split(const std::string& name);
  const FeatureOptions& features() const { return features_; }
  const std::string& feature_hash() const { return feature_hash_; }
  const Tokenizer& target_tokenizer() const { return target_; }
  const std::optional<Tokenizer>& source_tokenizer() const { return source_; }
  /// Some lines for people: splits, hours, vocabulary, what was dropped.
  std::string describe();

 private:
  Corpus(h5::File file, Tokenizer target) : file_(std::move(file)), target_(std::move(target)) {}

  h5::File file_;
  std::shared_ptr<const FileDescriptor> raw_;
  std::shared_ptr<const MappedFile> map_;
  std::vector<std::string> split_names_;
  FeatureOptions features_;
  std::string feature_hash_, store_;
  Tokenizer target_;
  std::optional<Tokenizer> source_;
  std::map<std::string, std::shared_ptr<const CorpusSplit>> splits_;
};

}  // namespace tactus
