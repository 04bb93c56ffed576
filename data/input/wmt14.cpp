#include "data/input/wmt14.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/files/files.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct Pair {
  std::string name, source, target;
  bool sgm = false;
};

bool is_pair_name(const std::string& name, const InputOptions& o) {
  return name.ends_with(o.source + "-" + o.target) || name.ends_with(o.target + "-" + o.source);
}

std::vector<Pair> training_pairs(const InputOptions& o) {
  std::set<std::string> stems;
  for (const fs::path& folder : {fs::path(o.path), fs::path(o.path) / "training"}) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const fs::path stem = entry.path().parent_path() / entry.path().stem();
      if (entry.path().extension() == "." + o.source && is_pair_name(stem.filename().string(), o))
        stems.insert(stem.string());
    }
  }
  std::vector<Pair> pairs;
  for (const std::string& stem : stems)
    pairs.push_back({fs::path(stem).filename().string(), stem + "." + o.source, stem + "." + o.target});
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.name < b.name; });
  if (pairs.empty()) {
    throw DataError(o.path + ": no training pairs such as training/europarl-v7." + o.target + "-" + o.source + "." +
                    o.source + "; unpack the released archives there");
  }
  return pairs;
}

Pair test_pair(const InputOptions& o, const std::string& split) {
  std::vector<fs::path> folders;
  for (const char* name : {"dev", "test", "test-full", "."}) folders.push_back(fs::path(o.path) / name);
  for (const fs::path& folder : folders) {
    const std::string stem = (folder / split).string();
    if (fs::exists(stem + "." + o.source)) return {split, stem + "." + o.source, stem + "." + o.target};
    for (const std::string& pair : {std::string(), "-" + o.target + o.source, "-" + o.source + o.target}) {
      const std::string source = stem + pair + "-src." + o.source + ".sgm";
      if (fs::exists(source)) return {split, source, stem + pair + "-ref." + o.target + ".sgm", true};
    }
  }
  throw DataError(o.path + ": no " + split + "." + o.source + " and no " + split + "-src." + o.source +
                  ".sgm in it or its folders dev and test");
}

/// Lines of a plain text or segments of an SGML file.
class Lines {
 public:
  Lines(const std::string& path, bool sgm, const std::string& utf8) : path_(path) {
    if (sgm) {
      segments_ = read_sgm_segments(path);
    } else {
      reader_ = std::make_unique<LineReader>(path, utf8);
    }
  }
  bool next(std::string& line) {
    if (reader_) {
      const bool more = reader_->next(line);
      number_ += more;
      return more;
    }
    if (number_ == static_cast<int64_t>(segments_.size())) return false;
    line = segments_[static_cast<size_t>(number_++)];
    return true;
  }
  int64_t number() const { return number_; }
  int64_t replaced_bytes() const { return reader_ ? reader_->replaced_bytes() : 0; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<LineReader> reader_;
  std::vector<std::string> segments_;
  int64_t number_ = 0;
};

class Wmt14Reader : public ItemReader {
 public:
  Wmt14Reader(std::vector<Pair> pairs, std::string utf8) : pairs_(std::move(pairs)), utf8_(std::move(utf8)) {
    has_src_text_ = true;
    for (const Pair& p : pairs_) {
      FileDescriptor::open_for_reading(p.source);
      FileDescriptor::open_for_reading(p.target);
    }
  }

  bool next(Item& item) override {
    for (std::string source, target; at_ < pairs_.size(); ++at_, source_.reset(), target_.reset()) {
      const Pair& pair = pairs_[at_];
      if (!source_) {
        source_ = std::make_unique<Lines>(pair.source, pair.sgm, utf8_);
        target_ = std::make_unique<Lines>(pair.target, pair.sgm, utf8_);
      }
      const bool s = source_->next(source), t = target_->next(target);
      if (s != t) {
        throw DataError(pair.source + " and " + pair.target + " have different numbers of lines: one ends after " +
                        std::to_string(std::min(source_->number(), target_->number())));
      }
      if (!s) {
        replaced_bytes_ += source_->replaced_bytes() + target_->replaced_bytes();
        continue;
      }
      item = {};
      item.id = pair.name + "-" + std::to_string(source_->number());
      item.where = pair.source + ":" + std::to_string(source_->number()) + " (id " + item.id + ")";
      item.src_text = source, item.tgt_text = target, item.subset = pair.name;
      return true;
    }
    return false;
  }

 private:
  std::vector<Pair> pairs_;
  std::string utf8_;
  size_t at_ = 0;
  std::unique_ptr<Lines> source_, target_;
};

std::string with_entities_resolved(std::string text) {
  const std::pair<const char*, const char*> entities[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : entities) {
    const std::string name = entity;
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
      text.replace(at, name.size(), character);
  }
  return text;
}

}  // namespace

std::vector<std::string> read_sgm_segments(const std::string& path) {
  const std::string text = read_text_file(path);
  std::vector<std::string> segments;
  for (size_t at = 0; (at = text.find("<seg", at)) != std::string::npos;) {
    const size_t begin = text.find('>', at), end = text.find("</seg>", at);
    if (begin == std::string::npos || end == std::string::npos || begin > end)
      throw DataError(path + ": segment " + std::to_string(segments.size() + 1) +
                      " does not end; the file was cut short");
    std::string segment = with_entities_resolved(text.substr(begin + 1, end - begin - 1));
    const size_t first = segment.find_first_not_of(" \t\r\n"), last = segment.find_last_not_of(" \t\r\n");
    segment = first == std::string::npos ? "" : segment.substr(first, last - first + 1);
    std::replace(segment.begin(), segment.end(), '\n', ' ');
    if (first_invalid_utf8(segment) >= 0)
      throw DataError(path + ": segment " + std::to_string(segments.size() + 1) + ": invalid UTF-8");
    segments.push_back(std::move(segment));
    at = end;
  }
  if (segments.empty()) throw DataError(path + ": no <seg> in it; expected an SGML test set");
  return segments;
}

std::unique_ptr<ItemReader> open_wmt14(const InputOptions& options, const std::string& split, OnError) {
  InputOptions o = options;
  if (o.source.empty()) o.source = "en";
  if (o.target.empty()) o.target = "de";
  return std::make_unique<Wmt14Reader>(split == "train" ? training_pairs(o) : std::vector<Pair>{test_pair(o, split)},
                                       o.invalid_utf8);
}

}  // namespace tactus
