#include "data/input/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <unordered_map>

#include "core/error.h"
#include "core/rng.h"
#include "data/input/media_path.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

enum Column { kId, kTarget, kAudio, kFrames, kStart, kDuration, kSource, kSource2, kSpeaker, kSubset, kColumns };
constexpr int kRequired = 2;
const std::array<std::string, kColumns> kNames = {"id",       "tgt_text", "audio",     "n_frames", "start",
                                                  "duration", "src_text", "src2_text", "speaker",  "subset"};

/// Fields of a line in which a backslash takes the next character as it is.
std::vector<std::string> split_escaped(const std::string& line) {
  std::vector<std::string> fields(1);
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      fields.back() += line[++i];
    } else if (line[i] == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

class ManifestReader : public ItemReader {
 public:
  ManifestReader(const InputOptions& o, const std::string& split, OnError on_error, bool escaped)
      : path_((fs::path(o.path) / (split + ".tsv")).string()),
        reader_(path_, o.invalid_utf8),
        media_(o.audio_root.empty() ? fs::path(path_).parent_path().string() : o.audio_root),
        on_error_(on_error),
        escaped_(escaped),
        lines_(count_lines(path_)) {
    read_header();
  }
  int64_t total() const override { return lines_ > 0 ? lines_ - 1 : lines_; }

  bool next(Item& item) override {
    for (std::string line; reader_.next(line);) {
      replaced_bytes_ = reader_.replaced_bytes();
      item = {};
      std::string message;
      const std::string reason = parse(line, item, message);
      item.where = reader_.where() + (item.id.empty() ? "" : " (id " + item.id + ")");
      if (!reason.empty()) {
        message = item.where + ": " + message;
        if (on_error_ == OnError::stop) throw DataError(message);
        count_drop(dropped_, reason, item.id.empty() ? "line " + std::to_string(reader_.number()) : item.id, message);
        continue;
      }
      // Ids are kept as 64-bit hashes: among ten million, two different ones are taken for one with probability 3e-6.
      const auto [other, fresh] = line_of_id_.emplace(mix_key(hash_path(item.id), item.id.size()), reader_.number());
      if (!fresh) throw DataError(item.where + ": id was used in line " + std::to_string(other->second) + " already");
      return true;
    }
    return false;
  }

 private:
  std::vector<std::string> fields_of(const std::string& line) const {
    if (escaped_) return split_escaped(line);
    const std::vector<std::string_view> views = split_tabs(line);
    return {views.begin(), views.end()};
  }

  void read_header() {
    std::string line;
    if (!reader_.next(line)) throw DataError(path_ + ": empty file; expected a header line with the column names");
    known_.fill(-1);
    const std::vector<std::string> names = fields_of(line);
    for (size_t at = 0; at < names.size(); ++at) {
      if (std::count(names.begin(), names.end(), names[at]) > 1)
        throw DataError(reader_.where() + ": column '" + names[at] + "' appears twice");
      const auto known = std::find(kNames.begin(), kNames.end(), names[at]);
      if (known != kNames.end()) {
        known_[static_cast<size_t>(known - kNames.begin())] = static_cast<int>(at);
      } else {
        extra_.push_back(at);
        extra_columns_.push_back(names[at]);
      }
    }
    fields_ = names.size();
    for (int c = 0; c < kRequired; ++c) {
      if (known_[static_cast<size_t>(c)] >= 0) continue;
      std::string found;
      for (const std::string& name : names) found += (found.empty() ? "" : ", ") + name;
      throw DataError(reader_.where() + ": column '" + kNames[static_cast<size_t>(c)] +
                      "' is missing; the header has: " + found);
    }
    has_src_text_ = known_[kSource] >= 0, has_src2_text_ = known_[kSource2] >= 0, has_media_ = known_[kAudio] >= 0;
  }

  /// The reason for which a line is unusable, or ""; `message` says it in words.
  std::string parse(const std::string& line, Item& item, std::string& message) {
    std::vector<std::string> fields = fields_of(line);
    if (fields.size() != fields_) {
      message = std::to_string(fields.size()) + " fields, the header has " + std::to_string(fields_);
      return "wrong_field_count";
    }
    auto field = [&](Column c) {
      return known_[c] < 0 ? std::string() : std::move(fields[static_cast<size_t>(known_[c])]);
    };
    item.id = field(kId), item.tgt_text = field(kTarget);
    item.src_text = field(kSource), item.src2_text = field(kSource2);
    item.speaker = field(kSpeaker), item.subset = field(kSubset);
    for (size_t at : extra_) item.extra.push_back(std::move(fields[at]));
    if (is_blank(item.id)) {
      message = "empty id";
      return "empty_id";
    }
    if (!has_media_) return "";
    const std::string audio = field(kAudio), frames = field(kFrames), start = field(kStart),
                      duration = field(kDuration);
    if (is_blank(audio)) {
      message = "empty audio path";
      return "empty_audio";
    }
    if (known_[kFrames] >= 0) {
      const auto [end, error] = std::from_chars(frames.data(), frames.data() + frames.size(), item.n_frames);
      if (error != std::errc() || end != frames.data() + frames.size() || item.n_frames < 0) {
        message = "n_frames is '" + frames + "', expected a whole number of 10 ms frames";
        return "bad_n_frames";
      }
    }
    try {
      item.media = media_.parse(audio);
      if (!start.empty()) item.media.start_seconds = parse_seconds(start, "start");
      if (!duration.empty()) item.media.duration_seconds = parse_seconds(duration, "duration");
    } catch (const DataError& e) {
      message = e.what();
      return "bad_audio_reference";
    }
    return "";
  }

  std::string path_;
  LineReader reader_;
  MediaPaths media_;
  OnError on_error_;
  bool escaped_;
  int64_t lines_;
  std::array<int, kColumns> known_;
  std::vector<size_t> extra_;
  size_t fields_ = 0;
  std::unordered_map<uint64_t, int64_t> line_of_id_;
};

}  // namespace

std::unique_ptr<ItemReader> open_manifest(const InputOptions& options, const std::string& split, OnError on_error) {
  return std::make_unique<ManifestReader>(options, split, on_error, false);
}

std::unique_ptr<ItemReader> open_fairseq_tsv(const InputOptions& options, const std::string& split, OnError on_error) {
  return std::make_unique<ManifestReader>(options, split, on_error, true);
}

}  // namespace tactus
