// Reads the sources: which folder includes which, how long files are, and whether every kernel has both back ends.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path;  ///< from the project's root, "kernels/gemm.cpp"
  std::vector<std::string> includes;
  int64_t lines = 0;
};

const std::set<std::string> kFolders{"core", "kernels", "autograd", "layers", "data", "train"};

/// What each folder may include besides itself.
const std::map<std::string, std::set<std::string>> kAllowed{
    {"core", {}},
    {"kernels", {"core"}},
    {"autograd", {"core", "kernels"}},
    {"layers", {"core", "kernels", "autograd"}},
    {"data", {"core"}},
    {"train", {"core", "kernels", "autograd", "layers", "data"}}};

/// The same for the parts of train/ that know nothing of the training loop.
const std::set<std::string> kLeafParts{"search", "metrics", "report"};

std::string first_folder(const std::string& path) { return path.substr(0, path.find('/')); }

/// "train/loop/trainer.h" -> "loop"; "" for files directly in train/ and other folders.
std::string part_of_train(const std::string& path) {
  if (first_folder(path) != "train") return "";
  const size_t begin = path.find('/') + 1, end = path.find('/', begin);
  return end == std::string::npos ? "" : path.substr(begin, end - begin);
}

Source read_source(const fs::path& file) {
  static const std::regex include(R"(^\s*#\s*include\s*"([^"]+)\")");
  Source s{fs::relative(file, TACTUS_SOURCE_DIR).generic_string(), {}, 0};
  std::ifstream in(file);
  for (std::string line; std::getline(in, line); ++s.lines) {
    std::smatch m;
    if (std::regex_search(line, m, include)) s.includes.push_back(m[1]);
  }
  return s;
}

std::vector<Source> sources_of(const std::set<std::string>& folders) {
  static const std::set<std::string> extensions{".h", ".cpp", ".cu", ".cuh"};
  std::vector<Source> all;
  for (const std::string& folder : folders) {
    const fs::path root = fs::path(TACTUS_SOURCE_DIR) / folder;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (extensions.contains(entry.path().extension().string())) all.push_back(read_source(entry.path()));
    }
  }
  return all;
}

/// Why `from` may not include `to`, or "".
std::string objection(const std::string& from, const std::string& to) {
  const std::string source = first_folder(from), target = first_folder(to);
  if (!kFolders.contains(target)) return "is not a path from the project's root";
  if (source != target && !kAllowed.at(source).contains(target)) return source + " must not know " + target;
  const std::string part = part_of_train(from), other = part_of_train(to);
  if (kLeafParts.contains(part) && other != part && (other == "loop" || other == "cli")) {
    return "train/" + part + " must not know train/" + other;
  }
  return "";
}

TEST(Architecture, IncludesFollowTheArrows) {
  const std::vector<Source> sources = sources_of(kFolders);
  ASSERT_GT(sources.size(), 40u);
  for (const Source& s : sources) {
    for (const std::string& to : s.includes) {
      EXPECT_EQ(objection(s.path, to), "") << s.path << " includes " << to;
    }
  }
}

TEST(Architecture, ObjectionsAreRaised) {
  EXPECT_EQ(objection("train/loop/trainer.cpp", "layers/linear.h"), "");
  EXPECT_EQ(objection("train/cli/main.cpp", "train/loop/trainer.h"), "");
  EXPECT_EQ(objection("train/search/beam.cpp", "train/metrics/bleu.h"), "");
  EXPECT_NE(objection("core/tensor.h", "kernels/gemm.h"), "");
  EXPECT_NE(objection("kernels/gemm.cu", "autograd/tape.h"), "");
  EXPECT_NE(objection("data/corpus.cpp", "kernels/gemm.h"), "");
  EXPECT_NE(objection("layers/linear.cpp", "data/corpus.h"), "");
  EXPECT_NE(objection("train/search/beam.cpp", "train/loop/trainer.h"), "");
  EXPECT_NE(objection("core/tensor.h", "tensor.h"), "");
}

TEST(Architecture, FilesStayShort) {
  std::set<std::string> folders = kFolders;
  folders.insert("tests");
  for (const Source& s : sources_of(folders)) {
    EXPECT_LE(s.lines, first_folder(s.path) == "kernels" ? 500 : 400) << s.path;
  }
}

/// A folder that nobody can take in at a glance is several: at most 30 sources, a name with all its endings counted once.
TEST(Architecture, FoldersStaySmall) {
  std::set<std::string> folders = kFolders;
  folders.insert("tests");
  std::map<std::string, std::set<std::string>> names;
  for (const Source& s : sources_of(folders)) {
    const fs::path path(s.path);
    names[path.parent_path().string()].insert(path.stem().string());
  }
  for (const auto& [folder, stems] : names) EXPECT_LE(stems.size(), 30u) << folder;
}

/// A kernel's contract x.h declares templates over the back end; then x.cpp and x.cu (or x_*.cpp, x_*.cu) beside it must
/// define them.
TEST(Architecture, EveryKernelHasBothBackEnds) {
  std::set<std::string> files;
  const fs::path folder = fs::path(TACTUS_SOURCE_DIR) / "kernels";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files.insert(fs::relative(entry.path(), folder).generic_string());
  }
  auto has = [&](const std::string& stem, const std::string& extension) {
    for (const std::string& f : files) {
      const bool mine = f == stem + extension || (f.starts_with(stem + "_") && f.ends_with(extension));
      if (mine) return true;
    }
    return false;
  };
  int contracts = 0;
  for (const std::string& f : files) {
    if (!f.ends_with(".h")) continue;
    std::ifstream in(folder / f);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (text.find("template <class D") == std::string::npos) continue;
    ++contracts;
    const std::string stem = f.substr(0, f.size() - 2);
    EXPECT_TRUE(has(stem, ".cpp")) << "kernels/" << f << " has no CPU implementation";
    EXPECT_TRUE(has(stem, ".cu")) << "kernels/" << f << " has no CUDA implementation";
  }
  EXPECT_GE(contracts, 10);
}

}  // namespace
}  // namespace tactus
