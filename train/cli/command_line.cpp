#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>

#include "core/error.h"
#include "core/process/log.h"
#include "core/process/signals.h"
#include "train/cli/commands.h"

namespace tactus {
namespace {

int fail(std::string message, int code) {
  stderr_log().end_live();
  std::replace(message.begin(), message.end(), '\n', ' ');  // messages of libraries may have several lines
  std::cerr << "tactus: " << message << "\n";
  return stop_signal() != 0 ? stop_exit_code() : code;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  // A reader that went away (`tactus score ... | head`) must not kill a run without a word.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Tactus trains and decodes sequence models from YAML configurations", "tactus");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text());
  int exit_code = 0;
  add_train_command(app, exit_code);
  add_check_command(app);
  add_decode_command(app);
  add_score_command(app);
  add_average_command(app);
  add_table_command(app);
  add_prepare_command(app);
  add_generate_command(app);
  add_bench_command(app);
  add_statistics_command(app);
  add_info_command(app);
  add_explain_command(app);
  try {
    app.parse(argc, argv);
    std::cout.flush();
    if (!std::cout && exit_code == 0) return fail("standard output cannot be written", 1);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(std::string(e.what()) + " (see tactus --help)", 2);
  } catch (const Error& e) {
    return fail(e.what(), e.exit_code());
  } catch (const std::bad_alloc&) {
    return fail("out of memory on the host", 1);
  } catch (const std::exception& e) {
    return fail(e.what(), 1);
  }
  return exit_code;
}

}  // namespace tactus
