#include "data/input/json_lines.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/files/json.h"
#include "data/input/media_path.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

/// A scalar as text; DataError for anything else.
std::string text_of(const Json& value) {
  if (value.kind() == Json::Kind::boolean) return value.as_bool() ? "true" : "false";
  if (value.kind() != Json::Kind::number) return value.as_string();
  const double number = value.as_double();
  if (number == static_cast<double>(static_cast<int64_t>(number))) return std::to_string(static_cast<int64_t>(number));
  JsonWriter json;
  return json.value(number).str();
}

bool is_scalar(const Json& value) {
  const Json::Kind k = value.kind();
  return k == Json::Kind::string || k == Json::Kind::number || k == Json::Kind::boolean;
}

class JsonLinesReader : public ItemReader {
 public:
  JsonLinesReader(const InputOptions& o, const std::string& split, OnError on_error)
      : split_(split),
        path_((fs::path(o.path) / (split + ".jsonl")).string()),
        reader_(path_, o.invalid_utf8),
        media_(o.audio_root.empty() ? o.path : o.audio_root),
        source_(o.source.empty() ? "src_text" : o.source),
        target_(o.target.empty() ? "tgt_text" : o.target),
        on_error_(on_error),
        total_(count_lines(path_)) {
    look_ahead(o);
  }
  int64_t total() const override { return total_; }

  bool next(Item& item) override {
    for (std::string line; reader_.next(line);) {
      replaced_bytes_ = reader_.replaced_bytes();
      if (is_blank(line)) continue;
      item = {};
      try {
        fill(parse_json(line, reader_.where()), item);
      } catch (const DataError& e) {
        const std::string what = e.what(), where = reader_.where();
        const std::string message = what.starts_with(where) ? what : where + ": " + what;
        if (on_error_ == OnError::stop) throw DataError(message);
        count_drop(dropped_, "bad_line", item.id.empty() ? "line " + std::to_string(reader_.number()) : item.id,
                   message);
        continue;
      }
      item.where = reader_.where() + " (id " + item.id + ")";
      if (!ids_.insert(item.id).second) throw DataError(item.where + ": id was used before");
      return true;
    }
    return false;
  }

 private:
  /// The first line says which keys there are.
  void look_ahead(const InputOptions& o) {
    LineReader reader(path_, o.invalid_utf8);
    std::string line;
    while (reader.next(line) && is_blank(line)) {
    }
    if (is_blank(line)) throw DataError(path_ + ": no objects in it");
    const Json first = parse_json(line, reader.where());
    if (!first.has(target_)) {
      std::string found;
      for (const auto& [key, value] : first.members()) found += (found.empty() ? "" : ", ") + key;
      throw DataError(reader.where() + ": key '" + target_ + "' is missing; there are: " + found);
    }
    has_src_text_ = first.has(source_), has_src2_text_ = first.has("src2_text"), has_media_ = first.has("audio");
    const std::set<std::string> known = {"id",       target_, source_,    "src2_text", "audio",
                                         "n_frames", "start", "duration", "speaker",   "subset"};
    for (const auto& [key, value] : first.members()) {
      if (!known.contains(key) && is_scalar(value)) extra_columns_.push_back(key);
    }
  }

  void fill(const Json& json, Item& item) {
    auto optional = [&](const std::string& key) {
      return json.has(key) && !json.at(key).is_null() ? text_of(json.at(key)) : std::string();
    };
    item.id = optional("id");
    if (item.id.empty()) item.id = split_ + "-" + std::to_string(reader_.number());
    item.tgt_text = text_of(json.at(target_));
    if (has_src_text_) item.src_text = text_of(json.at(source_));
    if (has_src2_text_) item.src2_text = text_of(json.at("src2_text"));
    item.speaker = optional("speaker"), item.subset = optional("subset");
    for (const std::string& key : extra_columns_) item.extra.push_back(optional(key));
    // Line breaks inside a string are text here, but every other part of the program reads one item a line.
    for (std::string* text : {&item.id, &item.speaker, &item.subset, &item.tgt_text, &item.src_text, &item.src2_text})
      std::replace(text->begin(), text->end(), '\n', ' ');
    if (!has_media_) return;
    item.media = media_.parse(text_of(json.at("audio")));
    if (json.has("n_frames")) item.n_frames = json.at("n_frames").as_int();
    if (json.has("start")) item.media.start_seconds = parse_seconds(text_of(json.at("start")), "start");
    if (json.has("duration")) item.media.duration_seconds = parse_seconds(text_of(json.at("duration")), "duration");
  }

  std::string split_, path_;
  LineReader reader_;
  MediaPaths media_;
  std::string source_, target_;
  OnError on_error_;
  int64_t total_;
  std::set<std::string> ids_;
};

}  // namespace

std::unique_ptr<ItemReader> open_json_lines(const InputOptions& options, const std::string& split, OnError on_error) {
  return std::make_unique<JsonLinesReader>(options, split, on_error);
}

}  // namespace tactus
