#include "data/lra/listops.h"
#include "data/lra/lra_inputs.h"
#include "data/lra/lra_reader.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

class ListOpsReader : public LraReader {
 public:
  ListOpsReader(const std::string& path, OnError on_error) : LraReader(on_error, false), lines_(path) {
    std::string header;
    if (!lines_.next(header)) throw DataError(path + ": is empty, expected the header 'Source<tab>Target'");
    const auto columns = split_tabs(header);
    if (columns.size() < 2 || columns[0] != "Source" || columns[1] != "Target")
      throw DataError(lines_.where() + ": the header is '" + header.substr(0, 60) + "', expected 'Source<tab>Target'");
  }

  bool next(Item& item) override {
    for (std::string line; lines_.next(line);) {
      item = Item{};
      item.id = std::to_string(lines_.number() - 1);
      item.where = lines_.where();
      try {
        const auto fields = split_tabs(line);
        if (fields.size() < 2) throw DataError(item.where + ": 1 field, expected a tree and its value");
        if (fields[1].size() != 1 || fields[1][0] < '0' || fields[1][0] > '9')
          throw DataError(item.where + ": the value is '" + std::string(fields[1].substr(0, 40)) +
                          "', expected a digit");
        item.src_text = listops_words(parse_listops(fields[0], item.where));
        item.tgt_text = fields[1];
        return true;
      } catch (const DataError& error) {
        fault("bad_row", item.id, error.what());
      }
    }
    return false;
  }

 private:
  LineReader lines_;
};

}  // namespace

std::unique_ptr<ItemReader> open_lra_listops(const InputOptions& options, const std::string& split, OnError on_error) {
  check_lra_options(options);
  const LraSplit s = lra_split(split, options.format);
  const std::string name = s == LraSplit::train ? "train" : s == LraSplit::valid ? "val" : "test";
  const std::filesystem::path root = find_lra_folder(options.path, {"", "listops-1000"}, "basic_" + name + ".tsv");
  return std::make_unique<ListOpsReader>((root / ("basic_" + name + ".tsv")).string(), on_error);
}

}  // namespace tactus
