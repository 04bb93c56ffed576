// Corpora: everything training needs in one HDF5 file, so that no audio library and no text processing is needed later.
//
//   /                      attributes: format, version, features (YAML), feature_hash
//   /tokenizer/target      u8: SentencePiece model; /tokenizer/source likewise where one was trained
//   /SPLIT                 attributes: has_src_text, dropped, dropped_reasons
//   /SPLIT/frames          f16 [frames, bins], contiguous: raw log-mel features of all utterances end to end
//   /SPLIT/frame_offsets   i64 [utterances + 1]
//   /SPLIT/COLUMN/{bytes,offsets}     id, src_text, tgt_text, speaker, subset: UTF-8 end to end
//   /SPLIT/{tgt,src}_tokens/{ids,offsets}   without <s> and </s>
//
// Raw features are stored and normalised at load: 16-bit log-mel values have exact sums in double, so what a model sees
// is the same on every machine, and the normalisation may change without a new corpus.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"
#include "core/h5.h"
#include "data/features.h"
#include "data/manifest.h"
#include "data/tokenizer.h"

namespace tactus {

/// Rows of variable length, end to end.
template <class T, class Row>
struct Ragged {
  std::vector<T> values;
  std::vector<int64_t> offsets{0};
  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  Row operator[](int64_t i) const { return Row(values.data() + offsets[i], static_cast<size_t>(length(i))); }
  void add(Row row) {
    values.insert(values.end(), row.begin(), row.end());
    offsets.push_back(static_cast<int64_t>(values.size()));
  }
};
using RaggedText = Ragged<char, std::string_view>;
using RaggedTokens = Ragged<int32_t, std::span<const int32_t>>;

/// The tables of one split: all but the frames.
struct CorpusTables {
  RaggedText id, src_text, tgt_text, speaker, subset;
  RaggedTokens tgt_tokens, src_tokens;  ///< src_tokens is empty where the corpus has no source tokenizer
  std::vector<int64_t> frame_offsets{0};
  bool has_src_text = false;
  int64_t dropped = 0;
  std::string dropped_reasons;
};

/// One split of an open corpus: tables in memory, frames on disk. Immutable; every method may be called from any
/// thread.
class CorpusSplit {
 public:
  const std::string& name() const { return name_; }
  int64_t size() const { return tables_.id.size(); }
  int64_t bins() const { return bins_; }
  int64_t frames(int64_t i) const { return tables_.frame_offsets[i + 1] - tables_.frame_offsets[i]; }
  int64_t total_frames() const { return tables_.frame_offsets.back(); }
  std::string_view id(int64_t i) const { return tables_.id[i]; }
  std::string_view src_text(int64_t i) const { return tables_.src_text[i]; }
  std::string_view tgt_text(int64_t i) const { return tables_.tgt_text[i]; }
  std::string_view speaker(int64_t i) const { return tables_.speaker[i]; }
  std::string_view subset(int64_t i) const { return tables_.subset[i]; }
  std::span<const int32_t> tgt_tokens(int64_t i) const { return tables_.tgt_tokens[i]; }
  std::span<const int32_t> src_tokens(int64_t i) const { return tables_.src_tokens[i]; }
  bool has_src_text() const { return tables_.has_src_text; }
  bool has_src_tokens() const { return has_src_tokens_; }
  int64_t dropped() const { return tables_.dropped; }
  const std::string& dropped_reasons() const { return tables_.dropped_reasons; }
  /// Reads the raw frames of utterance i to `out` [frames(i), bins()]; one read of the file.
  void read_frames(int64_t i, float* out) const;
  /// Hash of ids and lengths: two splits with the same one are visited in the same order.
  std::string fingerprint() const;

 private:
  friend class Corpus;
  std::string name_, path_;
  int64_t bins_ = 0, raw_offset_ = -1;
  bool has_src_tokens_ = false;
  CorpusTables tables_;
  std::shared_ptr<const FileDescriptor> file_;
};

/// An open corpus file. Opening reads a few hundred bytes and the tokenizers; tables are read when a split is first
/// asked for. A damaged file is a DataError naming it. split() is for one thread at a time (the HDF5 library has no
/// locks).
class Corpus {
 public:
  static Corpus open(const std::string& path);
  const std::string& path() const { return file_.path(); }
  const std::vector<std::string>& split_names() const { return split_names_; }
  /// DataError naming the splits there are when `name` is not one of them.
  std::shared_ptr<const CorpusSplit> split(const std::string& name);
  const FbankOptions& features() const { return features_; }
  const std::string& feature_hash() const { return feature_hash_; }
  const Tokenizer& target_tokenizer() const { return target_; }
  const std::optional<Tokenizer>& source_tokenizer() const { return source_; }
  /// Some lines for people: splits, hours, vocabulary, what was dropped.
  std::string describe();

 private:
  Corpus(h5::File file, Tokenizer target) : file_(std::move(file)), target_(std::move(target)) {}
  CorpusTables read_tables(const std::string& name) const;

  h5::File file_;
  std::shared_ptr<const FileDescriptor> raw_;
  std::vector<std::string> split_names_;
  FbankOptions features_;
  std::string feature_hash_;
  Tokenizer target_;
  std::optional<Tokenizer> source_;
  std::map<std::string, std::shared_ptr<const CorpusSplit>> splits_;
};

/// Writes a corpus under a temporary name; nothing is left behind unless commit() returns. Frames of a split are
/// spooled to an unnamed file first, because a contiguous dataset must know its size. Texts are given by a manifest
/// row, tokens are made here.
class CorpusWriter {
 public:
  CorpusWriter(const std::string& path, const FbankOptions& features, Tokenizer target,
               std::optional<Tokenizer> source);
  void begin_split(const std::string& name, bool has_src_text);
  /// `frames` [rows, bins]. DataError when a value is not a finite half-precision number.
  void add(const ManifestRow& row, std::span<const float> frames);
  void end_split(const DropCounts& dropped);
  void commit();

 private:
  void copy_spool(const std::string& dataset, int64_t rows);

  AtomicFile target_file_;
  h5::File file_;
  Tokenizer target_;
  std::optional<Tokenizer> source_;
  int64_t bins_;
  std::string split_;
  CorpusTables tables_;
  std::optional<FileDescriptor> spool_;
};

}  // namespace tactus
