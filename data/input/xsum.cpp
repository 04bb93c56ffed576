#include "data/input/xsum.h"

#include <filesystem>

#include "core/error.h"
#include "core/files/json.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSplitFile = "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json";

std::string single_spaces(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

class XsumReader : public ItemReader {
 public:
  XsumReader(const InputOptions& o, const std::string& split, OnError on_error)
      : folder_(o.path), utf8_(o.invalid_utf8), on_error_(on_error) {
    has_src_text_ = true;
    const std::string file = (fs::path(o.path) / kSplitFile).string();
    const std::string name = split == "dev" || split == "valid" ? "validation" : split;
    const Json json = parse_json(read_text_file(file), file);
    if (!json.has(name)) throw DataError(file + ": has no split '" + name + "'");
    for (const Json& id : json.at(name).items()) ids_.push_back(id.as_string());
  }
  int64_t total() const override { return static_cast<int64_t>(ids_.size()); }

  bool next(Item& item) override {
    while (at_ < ids_.size()) {
      const std::string& id = ids_[at_++];
      const std::string path = (fs::path(folder_) / "bbc-summary-data" / (id + ".summary")).string();
      if (id.find('/') != std::string::npos || !fs::exists(path)) {
        const std::string message = path + ": no such article";
        if (on_error_ == OnError::stop) throw DataError(message + "; on_error: skip leaves such articles out");
        count_drop(dropped_, "missing_article", id, message);
        continue;
      }
      item = {};
      item.id = id, item.where = path + " (id " + id + ")";
      try {
        read(path, item);
        return true;
      } catch (const DataError& e) {
        if (on_error_ == OnError::stop) throw;
        count_drop(dropped_, "bad_article", id, e.what());
      }
    }
    return false;
  }

 private:
  /// Sections begin with lines "[SN]NAME[SN]".
  void read(const std::string& path, Item& item) {
    LineReader lines(path, utf8_);
    std::string section, summary, body;
    bool has_summary = false, has_body = false;
    for (std::string line; lines.next(line);) {
      if (line.starts_with("[SN]") && line.ends_with("[SN]") && line.size() > 8) {
        section = line.substr(4, line.size() - 8);
        has_summary |= section == "FIRST-SENTENCE", has_body |= section == "RESTBODY";
        continue;
      }
      if (section == "FIRST-SENTENCE") summary += line + " ";
      if (section == "RESTBODY") body += line + " ";
    }
    replaced_bytes_ += lines.replaced_bytes();
    if (!has_summary || !has_body)
      throw DataError(path + ": lacks the section " + std::string(has_summary ? "RESTBODY" : "FIRST-SENTENCE"));
    item.src_text = single_spaces(body), item.tgt_text = single_spaces(summary);
  }

  std::string folder_, utf8_;
  OnError on_error_;
  std::vector<std::string> ids_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ItemReader> open_xsum(const InputOptions& options, const std::string& split, OnError on_error) {
  return std::make_unique<XsumReader>(options, split, on_error);
}

}  // namespace tactus
