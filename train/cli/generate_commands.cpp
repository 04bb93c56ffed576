// tactus generate: synthetic sets.
#include <filesystem>
#include <iostream>
#include <memory>

#include "data/lra/listops.h"
#include "data/lra/pathfinder.h"
#include "train/cli/commands.h"

namespace tactus {
namespace {

struct GenerateArguments {
  std::string out, config;
  std::vector<std::string> set;
};

template <class Options>
void run_generate(const GenerateArguments& a, void (*generate)(const Options&, const std::string&)) {
  Options options;
  (a.config.empty() ? Config::from_text("{}", "the command line", a.set) : Config::load(a.config, a.set)).read(options);
  std::error_code error;
  std::filesystem::create_directories(a.out, error);
  if (error) throw Error(a.out + ": cannot be made: " + error.message());
  generate(options, a.out);
  std::cout << options.train << " train, " << options.valid << " valid, " << options.test << " test\n" << a.out << "\n";
}

template <class Options>
void add_kind(CLI::App& generate, const std::string& name, const std::string& doc,
              void (*run)(const Options&, const std::string&)) {
  CLI::App* command = generate.add_subcommand(name, doc);
  auto a = std::make_shared<GenerateArguments>();
  command->add_option("--out", a->out, "Folder of the set")->required();
  command->add_option("--config", a->config, "YAML of the options, as the command leaves it beside a set");
  command->add_option("--set", a->set, "Override an option")->allow_extra_args(false);
  std::string keys;
  for (const KeyDoc& d : explain<Options>()) keys += "\n  " + d.key + " (" + d.default_value + ")  " + d.doc;
  command->footer("Options (default):" + keys);
  command->callback([a, run] { run_generate<Options>(*a, run); });
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "Write a synthetic data set");
  command->require_subcommand(1);
  add_kind<ListOpsOptions>(*command, "listops", "Long ListOps of the Long Range Arena", generate_listops);
  add_kind<PathfinderOptions>(*command, "pathfinder", "Pathfinder of the Long Range Arena", generate_pathfinder);
}

}  // namespace tactus
