// The commands of the binary. Each adds itself to the application; its callback runs the command and sets the exit
// code.
#pragma once

#include <CLI/CLI.hpp>

namespace tactus {

void add_train_command(CLI::App& app, int& exit_code);
void add_check_command(CLI::App& app);
void add_decode_command(CLI::App& app);
void add_score_command(CLI::App& app);
void add_average_command(CLI::App& app);
void add_table_command(CLI::App& app);
void add_prepare_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_bench_kernels(CLI::App& bench);
void add_statistics_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_explain_command(CLI::App& app);

/// Version, commit, compilers, back ends and linked libraries with their licences.
std::string version_text();

/// Parses the command line, runs the command, prints errors as one line. Returns the exit code: 0, 1 run time, 2 usage
/// or configuration, 3 data, 143 after SIGTERM.
int run_command_line(int argc, char** argv);

}  // namespace tactus
