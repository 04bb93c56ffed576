// tactus train, check, table, average.
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/process/log.h"
#include "core/process/signals.h"
#include "train/checkpoint/average.h"
#include "train/cli/commands.h"
#include "train/loop/plan_check.h"
#include "train/loop/trainer.h"
#include "train/table/table_run.h"

namespace tactus {
namespace {

struct TrainArguments {
  std::string config, run, device, resume = "auto";
  std::vector<std::string> set;
  int64_t gpus = 1;
};

RunOptions read_options(const TrainArguments& a) {
  std::vector<std::string> settings = a.set;
  if (!a.device.empty()) settings.push_back("device=" + a.device);
  RunOptions options;
  Config::load(a.config, settings).read(options);
  return options;
}

ResumeOptions resume_of(const std::string& text) {
  if (text == "auto") return {ResumeOptions::Kind::automatic, ""};
  if (text == "none") return {ResumeOptions::Kind::none, ""};
  return {ResumeOptions::Kind::folder, text};
}

void add_common(CLI::App* command, const std::shared_ptr<TrainArguments>& a) {
  command->add_option("CONFIG", a->config, "YAML configuration")->required();
  command->add_option("--set", a->set, "Override a key: --set train.max_updates=100 (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--device", a->device, "cpu or cuda; default: as configured");
}

int train(const TrainArguments& a) {
  if (a.gpus != 1) throw ConfigError("--gpus " + std::to_string(a.gpus) + ": this version trains on one device");
  const std::string run = a.run.empty() ? "runs/" + std::filesystem::path(a.config).stem().string() : a.run;
  Trainer trainer(read_options(a), run, resume_of(a.resume));
  const TrainResult r = trainer.run();
  if (r.stopped) {
    note("stopped by a signal; " + run + " holds a checkpoint of update " + std::to_string(r.updates));
    return stop_exit_code();
  }
  std::cout << "updates " << r.updates << ", epochs " << r.epochs << ", " << r.seconds << " s, "
            << static_cast<int64_t>(r.frames_per_second) << " frames/s, peak memory " << (r.memory.total_peak >> 20)
            << " MiB\n";
  std::cout << "best metric " << r.best_metric << " at update " << r.best_update << ": " << r.best_checkpoint << "\n";
  return 0;
}

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("train", "Train a model");
  auto a = std::make_shared<TrainArguments>();
  add_common(command, a);
  command->add_option("--run", a->run, "Run folder; default runs/NAME_OF_CONFIG");
  command->add_option("--resume", a->resume, "auto (go on where the run folder stands), none, or a checkpoint folder");
  command->add_option("--gpus", a->gpus, "Number of GPUs");
  command->callback([a, &exit_code] { exit_code = train(*a); });
}

void add_check_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("check", "Dry run: validate, scan the data, size memory, print the plan; trains nothing");
  auto a = std::make_shared<TrainArguments>();
  add_common(command, a);
  command->callback([a] { std::cout << check_plan(read_options(*a)); });
}

void add_table_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("table", "Train, average, decode and score each row of a table that is not done yet");
  auto request = std::make_shared<TableRequest>();
  command->add_option("TABLE", request->file, "YAML file of the table")->required();
  command->add_option("--rows", request->only, "Rows to run: a,b")->delimiter(',');
  command->add_option("--set", request->overrides, "Override a key in every row's configuration")
      ->allow_extra_args(false);
  command->add_option("--device", request->device, "cpu or cuda; default: as configured");
  command->callback([request] { std::cout << run_table(*request); });
}

void add_average_command(CLI::App& app) {
  struct Arguments {
    std::string run, out;
    int64_t best = 0, last = 0;
  };
  CLI::App* command = app.add_subcommand("average", "Average the weights of checkpoints");
  auto a = std::make_shared<Arguments>();
  command->add_option("RUN", a->run, "Run folder")->required();
  CLI::Option* best = command->add_option("--best", a->best, "Number of best checkpoints")->check(CLI::PositiveNumber);
  command->add_option("--last", a->last, "Number of newest checkpoints")->check(CLI::PositiveNumber)->excludes(best);
  command->add_option("--out", a->out, "Model file to write; default RUN/average.h5");
  command->callback([a] {
    const std::string out = a->out.empty() ? a->run + "/average.h5" : a->out;
    const bool last = a->last > 0;
    const auto updates = average_checkpoints(a->run, last ? AverageChoice::last : AverageChoice::best,
                                             last          ? a->last
                                             : a->best > 0 ? a->best
                                                           : 10,
                                             out);
    std::cout << "average of updates";
    for (long u : updates) std::cout << " " << u;
    std::cout << ": " << out << "\n";
  });
}

}  // namespace tactus
