#include "data/input/slurp.h"

#include <deque>
#include <filesystem>

#include "core/error.h"
#include "core/files/json.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

/// Speakable transcript with single spaces.
std::string transcript(const std::string& sentence, bool lower) {
  std::string spoken;
  for (char c : sentence) {
    if (c == '@') {
      spoken += " at ";
    } else if (c == '#') {
      spoken += " hashtag ";
    } else if (c != ',' && c != '.') {
      spoken += lower && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  std::string text;
  for (char c : spoken) {
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

struct Source {
  std::string file;
  bool synthetic;
};

class SlurpReader : public ItemReader {
 public:
  SlurpReader(const InputOptions& o, const std::string& split, OnError on_error)
      : folder_(o.path),
        audio_(o.audio_root.empty() ? o.path : o.audio_root),
        utf8_(o.invalid_utf8),
        on_error_(on_error) {
    has_src_text_ = has_media_ = true;
    extra_columns_ = {"slurp_id", "intent"};
    if (split == "train") {
      sources_ = {{"train.jsonl", false}, {"train_synthetic.jsonl", true}};
    } else if (split == "train_real") {
      sources_ = {{"train.jsonl", false}};
    } else {
      sources_ = {{split + ".jsonl", split == "train_synthetic"}};
    }
    for (const Source& s : sources_) LineReader(path(s));  // a missing file is known at once
  }

  bool next(Item& item) override {
    while (ready_.empty()) {
      std::string line;
      if (lines_ && lines_->next(line)) {
        try {
          read(line);
        } catch (const DataError& e) {
          if (on_error_ == OnError::stop) throw;
          count_drop(dropped_, "bad_line", lines_->where(), e.what());
        }
        replaced_bytes_ = replaced_before_ + lines_->replaced_bytes();
        continue;
      }
      if (at_ == sources_.size()) return false;
      replaced_before_ = replaced_bytes_;
      lines_ = std::make_unique<LineReader>(path(sources_[at_++]), utf8_);
    }
    item = std::move(ready_.front());
    ready_.pop_front();
    return true;
  }

 private:
  std::string path(const Source& s) const { return (fs::path(folder_) / s.file).string(); }

  /// One sentence with its recordings.
  void read(const std::string& line) {
    if (is_blank(line)) return;
    const std::string where = lines_->where();
    const bool synthetic = sources_[at_ - 1].synthetic;
    const Json json = parse_json(line, where);
    const std::string intent = json.at("scenario").as_string() + "_" + json.at("action").as_string();
    const std::string text = transcript(json.at("sentence").as_string(), synthetic);
    const Json& id = json.at("slurp_id");
    const std::string slurp_id = id.kind() == Json::Kind::string ? id.as_string() : std::to_string(id.as_int());
    std::deque<Item> items;
    for (const Json& recording : json.at("recordings").items()) {
      Item item;
      const std::string file = recording.at("file").as_string();
      item.id = slurp_id + "-" + fs::path(file).stem().string();
      item.media.kind = MediaRef::Kind::audio;
      item.media.path = (fs::path(audio_) / (synthetic ? "slurp_synth" : "slurp_real") / file).string();
      item.src_text = text, item.tgt_text = intent + " " + text;
      item.subset = synthetic ? "synthetic" : "real";
      item.extra = {slurp_id, intent};
      item.where = where + " (id " + item.id + ")";
      items.push_back(std::move(item));
    }
    for (Item& item : items) ready_.push_back(std::move(item));
  }

  std::string folder_, audio_, utf8_;
  OnError on_error_;
  std::vector<Source> sources_;
  size_t at_ = 0;
  std::unique_ptr<LineReader> lines_;
  int64_t replaced_before_ = 0;
  std::deque<Item> ready_;
};

}  // namespace

std::unique_ptr<ItemReader> open_slurp(const InputOptions& options, const std::string& split, OnError on_error) {
  return std::make_unique<SlurpReader>(options, split, on_error);
}

}  // namespace tactus
