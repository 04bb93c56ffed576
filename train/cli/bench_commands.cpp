// tactus bench.
#include <iostream>
#include <memory>

#include "core/files.h"
#include "train/cli/commands.h"
#include "train/loop/io_bench.h"
#include "train/loop/speech_task.h"

namespace tactus {
namespace {

struct IoArguments {
  IoBenchOptions options;
  std::string dtype = "f32", device = "auto", json;
};

void add_bench_io(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("io", "Batches out of a corpus that lies in the page cache");
  auto a = std::make_shared<IoArguments>();
  IoBenchOptions& o = a->options;
  CLI::Option* corpus = command->add_option("--corpus", o.corpus, "Corpus file");
  command->add_option("--synthetic", o.synthetic, "Frames of a made-up corpus, where none is given")
      ->check(CLI::Range(int64_t{10000}, int64_t{1000000000}))
      ->excludes(corpus);
  command->add_option("--split", o.split, "Split to read");
  command->add_option("--threads", o.loader.threads, "Threads that build batches")->check(CLI::Range(1, 256));
  command->add_option("--prefetch", o.loader.prefetch, "Batches ready or about to be")->check(CLI::Range(1, 1024));
  command->add_option("--dtype", a->dtype, "Type of the features: f32 or bf16")->check(CLI::IsMember({"f32", "bf16"}));
  command->add_option("--device", a->device, "cpu or cuda: whether memory is page-locked; default: auto");
  command->add_option("--max-frames", o.max_frames, "Frames in a batch")->check(CLI::PositiveNumber);
  command->add_option("--seconds", o.seconds, "How long to measure")->check(CLI::PositiveNumber);
  command->add_option("--json", a->json, "File for the result");
  command->callback([a] {
    a->options.dtype = float_type_from_string(a->dtype);
    const IoBenchResult result = bench_io(a->options, make_context(a->device, 1));
    std::cout << result.to_string();
    if (!a->json.empty()) write_text_atomic(a->json, result.to_json(a->options) + "\n");
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure parts of the program");
  bench->require_subcommand(1);
  add_bench_io(*bench);
  add_bench_kernels(*bench);
}

}  // namespace tactus
