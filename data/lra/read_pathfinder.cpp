#include <algorithm>
#include <charconv>

#include "data/lra/idx_items.h"
#include "data/lra/image/png_read.h"
#include "data/lra/lra_inputs.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

/// One line of metadata: "imgs/0 sample_7.png 7 1 ...", the folder, the file, its number there, the label.
struct PictureLine {
  std::string id, path, label, where;
};

std::vector<fs::path> numbered_files(const fs::path& folder) {
  std::vector<std::pair<int64_t, fs::path>> files;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) throw DataError(folder.string() + ": cannot list the folder: " + error.message());
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() != ".npy") continue;
    const std::string stem = entry.path().stem().string();
    int64_t number = -1;
    const auto [end, code] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (code != std::errc() || end != stem.data() + stem.size())
      throw DataError(entry.path().string() + ": the name is no number, expected metadata/0.npy, 1.npy, ...");
    files.emplace_back(number, entry.path());
  }
  if (files.empty()) throw DataError(folder.string() + ": there is no N.npy, expected metadata/0.npy, 1.npy, ...");
  std::sort(files.begin(), files.end());
  std::vector<fs::path> paths;
  for (auto& [number, path] : files) paths.push_back(std::move(path));
  return paths;
}

PictureLine parse_line(const fs::path& root, const std::string& line, const std::string& where) {
  std::vector<std::string> fields;
  for (size_t begin = 0; begin < line.size() && fields.size() < 4;) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  // Without a path the line is faulty; it keeps its place, so that the splits do not move.
  if (fields.size() < 4) return {where, "", "", where};
  const std::string path = fields[0] + "/" + fields[1];
  return {path, (root / path).string(), fields[3], where};
}

class PngTreeReader : public LraReader {
 public:
  PngTreeReader(const fs::path& root, LraSplit split, OnError on_error) : LraReader(on_error, true) {
    require_png(root.string());
    for (const fs::path& file : numbered_files(root / "metadata")) {
      LineReader lines(file.string());
      for (std::string line; lines.next(line);) {
        if (!is_blank(line)) lines_.push_back(parse_line(root, line, lines.where()));
      }
    }
    const size_t count = lines_.size(), tenth = count / 10;
    begin_ = position_ = split == LraSplit::train ? 0 : split == LraSplit::valid ? count - 2 * tenth : count - tenth;
    end_ = split == LraSplit::train ? count - 2 * tenth : split == LraSplit::valid ? count - tenth : count;
  }

  bool next(Item& item) override {
    while (position_ < end_) {
      const PictureLine& line = lines_[position_++];
      item = Item{};
      item.id = line.id;
      item.where = line.where + " (" + line.id + ")";
      try {
        if (line.path.empty()) throw DataError(line.where + ": expected 'folder file number label ...'");
        if (line.label != "0" && line.label != "1")
          throw DataError(line.where + ": the label is '" + line.label.substr(0, 40) + "', expected 0 or 1");
        item.src_text = read_png_grey(line.path).pixels;
        item.tgt_text = line.label;
        return true;
      } catch (const DataError& error) {
        fault("bad_picture", item.id, error.what());
      }
    }
    return false;
  }
  int64_t total() const override { return static_cast<int64_t>(end_ - begin_); }

 private:
  std::vector<PictureLine> lines_;
  size_t begin_ = 0, end_ = 0, position_ = 0;
};

}  // namespace

std::unique_ptr<ItemReader> open_lra_pathfinder(const InputOptions& options, const std::string& split,
                                                OnError on_error) {
  check_lra_options(options);
  const LraSplit s = lra_split(split, options.format);
  const std::string prefix = s == LraSplit::train ? "train" : s == LraSplit::valid ? "valid" : "test";
  std::error_code ignored;
  if (fs::exists(fs::path(options.path) / (prefix + "-images-idx3-ubyte"), ignored))
    return std::make_unique<IdxItems>(options.path, prefix, 2, on_error);
  const std::initializer_list<std::string> trees = {"", "curv_contour_length_14",
                                                    "pathfinder32/curv_contour_length_14"};
  for (const std::string& tree : trees) {
    if (const fs::path root = fs::path(options.path) / tree; fs::exists(root / "metadata", ignored))
      return std::make_unique<PngTreeReader>(root, s, on_error);
  }
  throw DataError("input.path " + options.path + ": there is neither " + prefix +
                  "-images-idx3-ubyte (of `tactus generate pathfinder`) nor a folder metadata, "
                  "curv_contour_length_14/metadata or pathfinder32/curv_contour_length_14/metadata");
}

}  // namespace tactus
