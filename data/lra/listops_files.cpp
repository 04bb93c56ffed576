#include <filesystem>
#include <memory>
#include <unordered_set>

#include "core/error.h"
#include "core/files/files.h"
#include "core/rng.h"
#include "data/lra/generate.h"
#include "data/lra/listops.h"

namespace tactus {
namespace {

/// One tree in twelve has a fitting length with the default limits.
constexpr int64_t kMostCandidatesWithoutATree = 1000000;
constexpr int64_t kCandidatesPerThread = 4096;  // most are a digit
constexpr size_t kBufferBytes = size_t{1} << 20;

struct Table {
  std::unique_ptr<AtomicFile> file;
  int64_t left = 0;
  std::string buffer;

  Table(const std::string& path, int64_t rows) : file(std::make_unique<AtomicFile>(path)), left(rows) {
    buffer = "Source\tTarget\n";
  }
  void add(const ListOpsTokens& tokens) {
    buffer += listops_source(tokens) + "\t" + std::to_string(listops_value(tokens)) + "\n";
    --left;
    if (buffer.size() > kBufferBytes) flush();
  }
  void flush() {
    file->write(buffer);
    buffer.clear();
  }
};

uint64_t hash_tokens(const ListOpsTokens& tokens) {
  return hash_path({reinterpret_cast<const char*>(tokens.data()), tokens.size()});
}

}  // namespace

void generate_listops(const ListOpsOptions& options, const std::string& folder) {
  if (options.min_length + 1 >= options.max_length)
    throw ConfigError("listops: no length is above min_length " + std::to_string(options.min_length) +
                      " and below max_length " + std::to_string(options.max_length));
  const std::filesystem::path root(folder);
  std::vector<Table> tables;
  tables.emplace_back((root / "basic_train.tsv").string(), options.train);
  tables.emplace_back((root / "basic_val.tsv").string(), options.valid);
  tables.emplace_back((root / "basic_test.tsv").string(), options.test);
  const int64_t total = options.train + options.valid + options.test;
  std::unordered_set<uint64_t> seen;  // of hashes: two trees with the same one lose a tree, no more
  int64_t kept = 0, last = -1;
  size_t table = 0;
  const auto make = [&](int64_t i) { return draw_listops(options, i); };
  const auto take = [&](int64_t i, std::optional<ListOpsTokens> tree) {
    while (table < tables.size() && tables[table].left == 0) ++table;
    if (table == tables.size()) return false;
    if (tree && seen.insert(hash_tokens(*tree)).second) {
      tables[table].add(*tree);
      last = i;
      if (++kept % 256 == 0 || kept == total) generation_progress("listops", kept, total);
    } else if (i - last >= kMostCandidatesWithoutATree) {
      throw ConfigError("listops: " + std::to_string(kMostCandidatesWithoutATree) +
                        " trees in succession were too short, too long or known; found " + std::to_string(kept) +
                        " of " + std::to_string(total) + "; widen min_length and max_length or ask for fewer");
    }
    return true;
  };
  generate_in_order(options.threads, kCandidatesPerThread, make, take);
  stderr_log().end_live();
  for (Table& t : tables) {
    t.flush();
    t.file->commit();
  }
  ListOpsOptions record = options;
  record.threads = 0;  // files of any number of threads are equal
  write_text_atomic((root / "listops.yaml").string(), dump_yaml(record));
}

}  // namespace tactus
