// Items: what every input format delivers and what preparation turns into a corpus. One item is one utterance, sentence
// pair, document or image, with its texts and the place of its sound or features.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tactus {

/// Where the samples or the feature matrix of an item lie.
struct MediaRef {
  enum class Kind {
    none,   ///< the item is text (or raw bytes) alone
    audio,  ///< any sound file
    npy,    ///< NumPy array [frames, width] or [frames, layers, width]
    ark,    ///< one matrix of a Kaldi archive, offset = first byte after the key
    hdf5    ///< dataset of an HDF5 file
  };
  Kind kind = Kind::none;
  std::string path;  ///< as it is opened
  int64_t offset = -1,
          bytes = -1;   ///< byte range inside `path` (a stored member of a zip, an archive's entry); -1: all
  std::string dataset;  ///< hdf5 only
  double start_seconds = 0, duration_seconds = -1;  ///< a part of a long recording; -1: to the end
  double speed = 1;                                 ///< audio only: played this much faster (speed perturbation)

  /// "file.zip:123:456", "long.wav:12.5+3.2s" for messages.
  std::string to_string() const;
  /// All of it on one line, and back; DataError for anything else.
  std::string encode() const;
  static MediaRef decode(std::string_view line);
};

struct Item {
  std::string id;
  MediaRef media;
  int64_t n_frames = -1;  ///< as the input claims, in 10 ms frames; -1: it does not say
  std::string src_text, tgt_text;
  std::string src2_text;  ///< second document of a pair (retrieval)
  std::string speaker, subset;
  std::vector<std::string> extra;  ///< in the order of ItemReader::extra_columns()
  std::string where;               ///< "file:line (id ID)", for messages
};

/// What was left out for one reason: how many, the first ids, and the first message.
struct DropCount {
  int64_t count = 0;
  std::vector<std::string> ids;  ///< at most kNamedIds
  std::string first;
};
constexpr size_t kNamedIds = 5;
using DropCounts = std::map<std::string, DropCount>;
void count_drop(DropCounts& drops, const std::string& reason, const std::string& id, const std::string& message);
void merge_drops(DropCounts& into, const DropCounts& from);
int64_t total(const DropCounts& drops);
/// "3 empty_text (a, b, c; first: ...), 1 bad_audio (d; first: ...)"; "none" when empty.
std::string to_string(const DropCounts& drops);

enum class OnError { stop, skip };
/// "stop" or "skip"; ConfigError otherwise.
OnError on_error_from_string(const std::string& name);

/// A stream of items of one split, in a fixed order. Errors of the file as a whole (a missing column, a repeated id,
/// invalid UTF-8 under policy `error`) are DataError with file and line, always. A faulty item stops with DataError, or
/// under OnError::skip is counted in dropped() and passed over. Blank texts are no fault here: what becomes of them is
/// decided by preparation.
class ItemReader {
 public:
  virtual ~ItemReader() = default;
  /// The next item; false at the end. Everything of `item` is replaced.
  virtual bool next(Item& item) = 0;
  /// Items to come in all, -1 where that is not known without reading everything; for progress only.
  virtual int64_t total() const { return -1; }

  const std::vector<std::string>& extra_columns() const { return extra_columns_; }
  bool has_src_text() const { return has_src_text_; }
  bool has_src2_text() const { return has_src2_text_; }
  bool has_media() const { return has_media_; }
  /// src_text holds raw bytes (pixels), not text.
  bool binary_source() const { return binary_source_; }
  const DropCounts& dropped() const { return dropped_; }
  /// Bytes replaced under invalid_utf8: replace, over all lines read.
  int64_t replaced_bytes() const { return replaced_bytes_; }

 protected:
  std::vector<std::string> extra_columns_;
  bool has_src_text_ = false, has_src2_text_ = false, has_media_ = false, binary_source_ = false;
  DropCounts dropped_;
  int64_t replaced_bytes_ = 0;
};

}  // namespace tactus
