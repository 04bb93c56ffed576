#include "data/input/mustc.h"

#include <yaml-cpp/yaml.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct Segment {
  double offset = 0, duration = 0;
  std::string wav, speaker;
};

/// One list entry, "- {duration: 3.5, offset: 16.1, speaker_id: spk.1, wav: ted_1.wav}".
Segment parse_segment(const std::string& line, const std::string& where) {
  try {
    const YAML::Node list = YAML::Load(line);
    const YAML::Node entry = list.IsSequence() && list.size() == 1 ? list[0] : YAML::Node();
    if (!entry.IsMap()) throw DataError(where + ": expected one segment, '- {duration: ..., offset: ..., wav: ...}'");
    for (const char* key : {"duration", "offset", "wav"}) {
      if (!entry[key]) throw DataError(where + ": segment lacks '" + key + "'");
    }
    Segment s{entry["offset"].as<double>(), entry["duration"].as<double>(), entry["wav"].as<std::string>(), ""};
    if (entry["speaker_id"]) s.speaker = entry["speaker_id"].as<std::string>();
    if (!std::isfinite(s.offset) || !std::isfinite(s.duration) || s.offset < 0 || s.duration <= 0)
      throw DataError(where + ": offset and duration must be seconds from 0 on");
    return s;
  } catch (const YAML::Exception& e) {
    throw DataError(where + ": not a segment: " + e.msg);
  }
}

class MustcReader : public ItemReader {
 public:
  MustcReader(const InputOptions& o, const std::string& split, OnError on_error)
      : folder_(fs::path(o.path) / "data" / split),
        segments_((folder_ / "txt" / (split + ".yaml")).string()),
        source_path_((folder_ / "txt" / (split + "." + (o.source.empty() ? "en" : o.source))).string()),
        target_path_((folder_ / "txt" / (split + "." + o.target)).string()),
        source_(source_path_, o.invalid_utf8),
        target_(target_path_, o.invalid_utf8),
        on_error_(on_error) {
    has_src_text_ = has_media_ = true;
    wav_folder_ = o.audio_root.empty() ? folder_ / "wav" : fs::path(o.audio_root);
  }

  bool next(Item& item) override {
    for (std::string line, source, target;;) {
      const bool segment = segments_.next(line), s = source_.next(source), t = target_.next(target);
      replaced_bytes_ = source_.replaced_bytes() + target_.replaced_bytes();
      if (!segment && !s && !t) return false;
      if (!segment || !s || !t) {
        throw DataError(segments_.where() + ": ends with another number of lines than " + source_path_ + " (line " +
                        std::to_string(source_.number()) + ") and " + target_path_ + " (line " +
                        std::to_string(target_.number()) + "); they must go together");
      }
      try {
        fill(item, parse_segment(line, segments_.where()), source, target);
        return true;
      } catch (const DataError& e) {
        if (on_error_ == OnError::stop) throw;
        count_drop(dropped_, "bad_segment", segments_.where(), e.what());
      }
    }
  }

 private:
  void fill(Item& item, const Segment& s, const std::string& source, const std::string& target) {
    item = {};
    if (s.wav != wav_) wav_ = s.wav, number_ = 0;
    item.id = fs::path(s.wav).stem().string() + "_" + std::to_string(number_++);
    item.media.kind = MediaRef::Kind::audio;
    item.media.path = (wav_folder_ / s.wav).string();
    item.media.start_seconds = s.offset, item.media.duration_seconds = s.duration;
    item.src_text = source, item.tgt_text = target, item.speaker = s.speaker;
    item.where = segments_.where() + " (id " + item.id + ")";
  }

  fs::path folder_, wav_folder_;
  LineReader segments_;
  std::string source_path_, target_path_;
  LineReader source_, target_;
  OnError on_error_;
  std::string wav_;
  int64_t number_ = 0;
};

}  // namespace

std::unique_ptr<ItemReader> open_mustc(const InputOptions& options, const std::string& split, OnError on_error) {
  if (options.target.empty())
    throw ConfigError("input.format mustc: input.target names the language of the target, e.g. de");
  return std::make_unique<MustcReader>(options, split, on_error);
}

}  // namespace tactus
