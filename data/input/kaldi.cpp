#include "data/input/kaldi.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "data/features.h"
#include "data/input/media_path.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSpaces = " \t";

/// "KEY rest of the line"; the rest loses the white space around it.
struct Entry {
  std::string key, value, where;
};

bool next_entry(LineReader& reader, Entry& entry) {
  for (std::string line; reader.next(line);) {
    const size_t begin = line.find_first_not_of(kSpaces);
    if (begin == std::string::npos) continue;
    const size_t end = std::min(line.find_first_of(kSpaces, begin), line.size());
    const size_t value = std::min(line.find_first_not_of(kSpaces, end), line.size());
    entry.key = line.substr(begin, end - begin);
    entry.value = line.substr(value);
    while (entry.value.ends_with(' ') || entry.value.ends_with('\t')) entry.value.pop_back();
    entry.where = reader.where();
    return true;
  }
  return false;
}

using Table = std::unordered_map<std::string, std::string>;

/// A whole file of entries; DataError for a key that comes twice.
Table read_table(const std::string& path, const std::string& utf8, int64_t& replaced) {
  Table table;
  LineReader reader(path, utf8);
  for (Entry e; next_entry(reader, e);) {
    if (!table.emplace(e.key, e.value).second) throw DataError(e.where + ": '" + e.key + "' was listed before");
  }
  replaced += reader.replaced_bytes();
  return table;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0;;) {
    const size_t begin = text.find_first_not_of(kSpaces, at);
    if (begin == std::string::npos) return words;
    at = std::min(text.find_first_of(kSpaces, begin), text.size());
    words.push_back(text.substr(begin, at - begin));
  }
}

class KaldiReader : public ItemReader {
 public:
  KaldiReader(const InputOptions& o, const std::string& split, OnError on_error)
      : folder_(fs::path(o.path) / split), utf8_(o.invalid_utf8), on_error_(on_error), media_(o.audio_root) {
    if (!fs::is_directory(folder_)) throw DataError(folder_.string() + ": no such folder");
    has_media_ = true, has_src_text_ = !o.source.empty();
    target_ = table(o.target.empty() || o.target == "text" ? "text" : "text." + o.target, true);
    if (has_src_text_) source_ = table(o.source == "text" ? "text" : "text." + o.source, true);
    speaker_ = table("utt2spk", false);
    frames_ = table("utt2num_frames", false);
    if (frames_.empty()) seconds_ = table("utt2dur", false);
    features_ = fs::exists(folder_ / "feats.scp");
    segmented_ = !features_ && fs::exists(folder_ / "segments");
    if (segmented_) recordings_ = table("wav.scp", true);
    list_path_ = (folder_ / (features_ ? "feats.scp" : segmented_ ? "segments" : "wav.scp")).string();
    list_ = std::make_unique<LineReader>(list_path_, utf8_);
    total_ = count_lines(list_path_);
  }
  int64_t total() const override { return total_; }

  bool next(Item& item) override {
    for (Entry e; next_entry(*list_, e);) {
      item = {};
      item.id = e.key;
      item.where = e.where + " (id " + e.key + ")";
      if (!seen_.emplace(e.key, "").second) throw DataError(item.where + ": listed before");
      const auto target = target_.find(e.key);
      const bool no_source = has_src_text_ && !source_.contains(e.key);
      if (target == target_.end() || no_source) {
        count_drop(dropped_, "missing_text", e.key, item.where + ": has no line in the texts");
        continue;
      }
      try {
        if (!place(e, item)) continue;
      } catch (const DataError& error) {
        const std::string message = item.where + ": " + error.what();
        if (on_error_ == OnError::stop) throw DataError(message);
        count_drop(dropped_, "bad_audio_reference", e.key, message);
        continue;
      }
      item.tgt_text = target->second;
      if (has_src_text_) item.src_text = source_.at(e.key);
      if (const auto s = speaker_.find(e.key); s != speaker_.end()) item.speaker = s->second;
      item.n_frames = claimed_frames(e.key);
      return true;
    }
    count_text_without_audio();
    return false;
  }

 private:
  Table table(const std::string& name, bool required) {
    const std::string path = (folder_ / name).string();
    if (!required && !fs::exists(path)) return {};
    return read_table(path, utf8_, replaced_bytes_);
  }

  MediaRef recording(const std::string& entry) {
    const std::string file = file_of_wav_entry(entry);
    if (file.empty()) {
      throw DataError("the command '" + entry.substr(0, 100) +
                      "' is not run; write the audio to a file (wav, flac, ogg) and name that in wav.scp");
    }
    return media_.parse(file);
  }

  /// Where the sound of an entry lies; false when its recording is not there.
  bool place(const Entry& e, Item& item) {
    if (features_) {
      if (e.value.find('[') != std::string::npos)
        throw DataError("row ranges of feats.scp are not read; copy the features of the segments (copy-feats)");
      item.media = media_.parse(e.value);
      if (item.media.kind == MediaRef::Kind::audio)
        throw DataError("'" + e.value + "' is no place of features; expected FILE.ark:OFFSET");
      return true;
    }
    if (!segmented_) {
      item.media = recording(e.value);
      return true;
    }
    const std::vector<std::string> words = words_of(e.value);
    if (words.size() != 3) throw DataError("expected UTTERANCE RECORDING START END");
    const auto wav = recordings_.find(words[0]);
    if (wav == recordings_.end()) {
      count_drop(dropped_, "missing_audio", e.key, item.where + ": recording " + words[0] + " is not in wav.scp");
      return false;
    }
    const double start = parse_seconds(words[1], "start");
    // Kaldi writes -1 for the end of the recording.
    const double end = words[2] == "-1" ? -1 : parse_seconds(words[2], "end");
    if (end >= 0 && end <= start)
      throw DataError("the segment ends at " + words[2] + ", not after its start " + words[1]);
    item.media = recording(wav->second);
    item.media.start_seconds = start;
    if (end >= 0) item.media.duration_seconds = end - start;
    return true;
  }

  int64_t claimed_frames(const std::string& id) const {
    if (const auto f = frames_.find(id); f != frames_.end()) {
      int64_t n = -1;
      std::from_chars(f->second.data(), f->second.data() + f->second.size(), n);
      return n;
    }
    const auto s = seconds_.find(id);
    if (s == seconds_.end()) return -1;
    const double samples = std::strtod(s->second.c_str(), nullptr) * static_cast<double>(kSampleRate);
    return samples < kFrameSamples ? 0 : 1 + (static_cast<int64_t>(samples) - kFrameSamples) / kShiftSamples;
  }

  /// Lines of text whose utterance has no audio.
  void count_text_without_audio() {
    if (counted_) return;
    counted_ = true;
    std::vector<std::string> ids;
    for (const auto& [id, text] : target_) {
      if (!seen_.contains(id)) ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    for (const std::string& id : ids)
      count_drop(dropped_, "missing_audio", id, (folder_ / "text").string() + ": " + id + " is not in " + list_path_);
  }

  fs::path folder_;
  std::string utf8_;
  OnError on_error_;
  MediaPaths media_;
  Table target_, source_, speaker_, frames_, seconds_, recordings_, seen_;
  bool features_ = false, segmented_ = false, counted_ = false;
  std::string list_path_;
  std::unique_ptr<LineReader> list_;
  int64_t total_ = -1;
};

}  // namespace

std::string file_of_wav_entry(const std::string& entry) {
  if (!entry.ends_with('|')) return entry;
  std::vector<std::string> words = words_of(entry.substr(0, entry.size() - 1));
  if (words.empty() || entry.find_first_of("|<>;&$`\"'") != entry.size() - 1) return "";
  const std::string program = fs::path(words[0]).filename().string();
  std::vector<std::string> files;
  if (program == "cat") {
    files.assign(words.begin() + 1, words.end());
  } else if (program == "flac") {
    for (size_t i = 1; i < words.size(); ++i) {
      if (!words[i].starts_with('-')) files.push_back(words[i]);
    }
  } else if (program == "sox") {
    // sox [options] FILE [options] - : formats are converted, no effect follows.
    bool out = false;
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string& w = words[i];
      if (out) return "";
      if (w == "-t" || w == "-c" || w == "-e" || w == "-b" || w == "--type" || w == "--channels") {
        ++i;
      } else if (w == "-") {
        out = true;
      } else if (!w.starts_with('-')) {
        files.push_back(w);
      } else if (w != "-q" && w != "-V0" && w != "-V1") {
        return "";
      }
    }
  }
  return files.size() == 1 && files[0] != "-" ? files[0] : "";
}

std::unique_ptr<ItemReader> open_kaldi(const InputOptions& options, const std::string& split, OnError on_error) {
  return std::make_unique<KaldiReader>(options, split, on_error);
}

}  // namespace tactus
