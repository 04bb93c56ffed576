#include <fstream>

#include "data/lra/lra_inputs.h"
#include "data/lra/lra_reader.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

constexpr size_t kMaxRowBytes = size_t{1} << 26;

/// Lines of any bytes: the reference treats the documents as bytes, and not all of them are UTF-8.
class ByteLines {
 public:
  explicit ByteLines(const std::string& path) : path_(path), in_(path, std::ios::binary) {
    std::error_code ignored;
    if (!in_ || std::filesystem::is_directory(path, ignored))
      throw DataError(path + ": cannot open as a file for reading");
  }

  bool next(std::string& line) {
    line.clear();
    std::streambuf& bytes = *in_.rdbuf();
    int c = bytes.sbumpc();
    if (c == EOF) return false;
    ++number_;
    for (; c != EOF && c != '\n'; c = bytes.sbumpc()) {
      if (line.size() == kMaxRowBytes)
        throw DataError(where() + ": the line is longer than " + std::to_string(kMaxRowBytes) +
                        " bytes; is this a table of documents?");
      line.push_back(static_cast<char>(c));
    }
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }
  int64_t number() const { return number_; }
  std::string where() const { return path_ + ":" + std::to_string(number_); }

 private:
  std::string path_;
  std::ifstream in_;
  int64_t number_ = 0;
};

std::string_view unquoted(std::string_view text) {
  while (!text.empty() && (text.front() == '"' || text.front() == ' ')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '"' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

class PairReader : public LraReader {
 public:
  PairReader(const std::string& path, OnError on_error) : LraReader(on_error, true), lines_(path) {
    has_src2_text_ = true;
  }

  bool next(Item& item) override {
    for (std::string line; lines_.next(line);) {
      item = Item{};
      item.id = std::to_string(lines_.number());
      item.where = lines_.where();
      const std::string why = parse(line, item);
      if (why.empty()) return true;
      fault("bad_row", item.id, item.where + ": " + why);
    }
    return false;
  }

 private:
  /// What is wrong with the row, or "".
  static std::string parse(std::string_view line, Item& item) {
    const auto fields = split_tabs(line);
    if (fields.size() != 5) return std::to_string(fields.size()) + " fields, expected 5: label, id1, id2, text1, text2";
    const std::string_view label = unquoted(fields[0]);
    if (label == "0" || label == "0.0") {
      item.tgt_text = "0";
    } else if (label == "1" || label == "1.0") {
      item.tgt_text = "1";
    } else {
      return "the label has " + std::to_string(label.size()) + " bytes and is neither 0 (0.0) nor 1 (1.0)";
    }
    const std::string first(unquoted(fields[1])), second(unquoted(fields[2]));
    // The row number keeps ids apart: a pair may occur twice.
    if (first_invalid_utf8(first) >= 0 || first_invalid_utf8(second) >= 0) return "an id is not valid UTF-8";
    item.id += ":" + first + ":" + second;
    item.src_text = fields[3];
    item.src2_text = fields[4];
    return "";
  }

  ByteLines lines_;
};

}  // namespace

std::unique_ptr<ItemReader> open_lra_retrieval(const InputOptions& options, const std::string& split,
                                               OnError on_error) {
  check_lra_options(options);
  const LraSplit s = lra_split(split, options.format);
  const std::string name = std::string("new_aan_pairs.") +
                           (s == LraSplit::train   ? "train"
                            : s == LraSplit::valid ? "eval"
                                                   : "test") +
                           ".tsv";
  return std::make_unique<PairReader>((find_lra_folder(options.path, {"", "tsv_data"}, name) / name).string(),
                                      on_error);
}

}  // namespace tactus
