// tactus prepare, info, explain.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "core/files/files.h"
#include "core/files/h5.h"
#include "data/prepare/prepare.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/state_file.h"
#include "train/cli/commands.h"
#include "train/table/table_run.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct PrepareArguments {
  std::string recipe, out;
  std::vector<std::string> set;
};

void run_prepare(const PrepareArguments& a) {
  PrepareOptions options;
  std::vector<std::string> settings = a.set;
  settings.push_back("output=" + a.out + "/corpus.h5");
  Config::load(a.recipe, settings).read(options);
  std::error_code error;
  fs::create_directories(a.out, error);
  if (error) throw Error(a.out + ": cannot be made: " + error.message());
  for (const PreparedSplit& s : prepare(options)) std::cout << s.to_string() << "\n";
  std::cout << options.output << "\n";
}

std::string describe_model(const std::string& path) {
  const ModelInfo info = read_model_info(path);
  const h5::File file = h5::File::open(path);
  int64_t numbers = 0;
  for (const std::string& name : file.list("/weights")) {
    int64_t n = 1;
    for (int64_t e : file.shape("/weights/" + name)) n *= e;
    numbers += n;
  }
  const Tokenizer target = Tokenizer::from_blob(info.target_tokenizer, path);
  return path + ": " + info.task + " model, update " + std::to_string(info.update) + ", trained in " + info.dtype +
         "\n" + std::to_string(numbers) + " parameters, target vocabulary " + std::to_string(target.size()) + " (" +
         target.hash() + "), features " + info.feature_hash + "\n\n" + info.config_yaml;
}

std::string describe(const std::string& path) {
  if (fs::is_directory(path) && fs::exists(path + "/corpus.h5")) return describe(path + "/corpus.h5");
  if (fs::is_directory(path)) return describe_model(find_model(path));
  if (!fs::exists(path)) throw DataError(path + ": no such file");
  if (fs::path(path).extension() == ".model") {
    const Tokenizer t = Tokenizer::from_blob(read_text_file(path), path);
    return path + ": " + t.kind() + " tokenizer, " + std::to_string(t.size()) + " pieces, hash " + t.hash() + "\n";
  }
  const h5::File file = h5::File::open(path);
  const std::string format = file.has_attribute("/", "format") ? file.attribute_string("/", "format") : "";
  if (format == "tactus model") return describe_model(path);
  if (format == "tactus state") {
    const TrainState s = read_state_counters(path);
    return path + ": training state of update " + std::to_string(s.update) + ", epoch " + std::to_string(s.epoch + 1) +
           ", next batch " + std::to_string(s.next_batch) + "\n";
  }
  return Corpus::open(path).describe();
}

void print_docs(const std::string& heading, const std::vector<KeyDoc>& docs, const std::string& wanted, bool& found) {
  bool headed = false;
  for (const KeyDoc& d : docs) {
    if (!wanted.empty() && d.key != wanted && d.key.rfind(wanted + ".", 0) != 0) continue;
    if (!headed) std::cout << heading << "\n";
    headed = found = true;
    std::cout << "  " << d.key;
    if (!d.is_section) {
      std::cout << "  (" << d.type << (d.unit.empty() ? "" : ", " + d.unit) << "; "
                << (d.default_value == "required" ? "required"
                                                  : "default " + (d.default_value.empty() ? "none" : d.default_value))
                << (d.range.empty() ? "" : "; " + d.range) << ")";
    }
    if (!d.doc.empty()) std::cout << "\n      " << d.doc;
    std::cout << "\n";
  }
}

void explain_keys(const std::string& wanted) {
  bool found = false;
  print_docs("Training configurations (tactus train, check)", explain<RunOptions>(), wanted, found);
  print_docs("Preparation recipes (tactus prepare)", explain<PrepareOptions>(), wanted, found);
  print_docs("Tables (tactus table)", explain<TableOptions>(), wanted, found);
  if (found) return;
  std::vector<std::string> keys;
  for (const auto& docs : {explain<RunOptions>(), explain<PrepareOptions>(), explain<TableOptions>()}) {
    for (const KeyDoc& d : docs) keys.push_back(d.key);
  }
  const std::string near = nearest_name(wanted, keys.data(), static_cast<int>(keys.size()));
  throw ConfigError("there is no key '" + wanted + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                    " (tactus explain lists all)");
}

}  // namespace

void add_prepare_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("prepare", "Turn manifests and audio into a corpus file, DIR/corpus.h5");
  auto a = std::make_shared<PrepareArguments>();
  command->add_option("RECIPE", a->recipe, "YAML recipe")->required();
  command->add_option("--out", a->out, "Folder of the corpus")->required();
  command->add_option("--set", a->set, "Override a key of the recipe")->allow_extra_args(false);
  command->callback([a] { run_prepare(*a); });
}

void add_info_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Say what a run, checkpoint, model, corpus or tokenizer file holds");
  auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "File or folder")->required();
  command->callback([path] { std::cout << describe(*path); });
}

void add_explain_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("explain", "Document configuration keys: type, unit, default, range");
  auto key = std::make_shared<std::string>();
  command->add_option("KEY", *key, "A key or section; default: all");
  command->callback([key] { explain_keys(*key); });
}

}  // namespace tactus
