// Writes corpora; data/corpus/corpus.h has the layout.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/corpus/corpus.h"

namespace tactus {

/// How the frames of a corpus are kept.
enum class FrameStore { f16, f32, on_the_fly };
FrameStore frame_store_from_string(const std::string& name);

struct CorpusOptions {
  FeatureOptions features;  ///< resolved: width is known
  FrameStore store = FrameStore::f16;
  bool copy_text = true;  ///< keep src_text, src2_text and tgt_text beside their tokens
};

/// An item in the form in which it is stored.
struct EncodedItem {
  int64_t frames = 0;
  std::vector<uint8_t> frame_bytes;  ///< f16 or f32; empty on the fly
  std::vector<double> moments;       ///< [2, width]: sum and sum of squares of the frames as stored
  std::vector<int32_t> tgt_tokens, src_tokens, src2_tokens;
};

/// Encodes items. Immutable: for any number of threads.
class ItemEncoder {
 public:
  ItemEncoder(CorpusOptions options, Tokenizer target, std::optional<Tokenizer> source)
      : options_(std::move(options)), target_(std::move(target)), source_(std::move(source)) {}
  /// `frames` [rows, width]. DataError when a value is not a finite number of the stored type.
  EncodedItem encode(const Item& item, std::span<const float> frames) const;
  const CorpusOptions& options() const { return options_; }
  const Tokenizer& target() const { return target_; }
  const std::optional<Tokenizer>& source() const { return source_; }

 private:
  CorpusOptions options_;
  Tokenizer target_;
  std::optional<Tokenizer> source_;
};

/// What the items of a split have.
struct SplitColumns {
  bool has_src_text = false, has_src2_text = false;
  bool binary_source = false;  ///< src_text is raw bytes: kept as tokens alone
  std::vector<std::string> extra = {};
};

/// A growing sequence of bytes in an unnamed file, copied to its place when its size is known.
class Spool {
 public:
  explicit Spool(const std::string& beside);
  void append(const void* bytes, size_t count);
  template <class T>
  void append(const T& value) {
    append(&value, sizeof value);
  }
  int64_t size() const { return size_; }
  void copy_to(int fd, int64_t offset, const std::string& path);

 private:
  void flush();
  std::string path_;
  FileDescriptor file_;
  std::string buffer_;
  int64_t size_ = 0;
};

/// Writes a corpus under a temporary name; nothing is left behind unless commit() returns. Memory stays flat: every
/// column is spooled, because a contiguous dataset must know its size.
class CorpusWriter {
 public:
  CorpusWriter(const std::string& path, CorpusOptions options, Tokenizer target, std::optional<Tokenizer> source);
  ~CorpusWriter();
  const ItemEncoder& encoder() const { return encoder_; }
  void begin_split(const std::string& name, const SplitColumns& columns);
  /// `encoded` brings its frames along; or all of a split's items leave theirs in files that add_frames() names, in the
  /// order of the items, and that stay until end_split() returns.
  void add(const Item& item, const EncodedItem& encoded);
  void add_frames(const std::string& path, int64_t offset, int64_t bytes);
  void add(const Item& item, std::span<const float> frames) { add(item, encoder_.encode(item, frames)); }
  /// `report`: JSON for `tactus info`, as made by report_json().
  void end_split(const std::string& report);
  void commit();

 private:
  struct Split;
  void write_column(const std::string& name, h5::Stored type, std::vector<int64_t> shape, Spool& spool);
  void write_frames();

  AtomicFile target_file_;
  h5::File file_;
  ItemEncoder encoder_;
  std::unique_ptr<Split> split_;
  FileDescriptor raw_;
};

/// {"items": n, "kept": n, "unknown_tokens": n, "dropped": {reason: {"count": n, "ids": [...], "first": "..."}}}
std::string report_json(int64_t items, int64_t kept, int64_t unknown_tokens, const DropCounts& dropped);
DropCounts drops_of_report(const std::string& report, const std::string& where);

}  // namespace tactus
