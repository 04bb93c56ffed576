// tactus bench.
#include <iostream>
#include <memory>

#include "core/files/files.h"
#include "train/bench/io_bench.h"
#include "train/bench/train_bench.h"
#include "train/cli/commands.h"
#include "train/tasks/speech_task.h"

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

struct TrainArguments {
  TrainBenchOptions options;
  std::string device = "auto", json;
  int64_t threads = 0;
};

void add_bench_train(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("train", "Training steps of the speech translation model on made-up batches");
  auto a = std::make_shared<TrainArguments>();
  TrainBenchOptions& o = a->options;
  command->add_option("--attention", o.attention, "Attention of the decoder")
      ->check(CLI::IsMember({"mha", "mqa", "gqa", "mla", "mtla"}));
  command->add_option("--stride", o.stride, "Rows that mtla merges")->check(CLI::Range(1, 64));
  command->add_option("--dtype", o.dtype, "bf16 or f32")->check(CLI::IsMember({"f32", "bf16"}));
  command->add_option("--max-frames", o.max_frames, "Utterances of a batch times the longest of them")
      ->check(CLI::Range(int64_t{100}, int64_t{100000000}));
  command->add_option("--batches", o.batches, "Batches of a pass")->check(CLI::Range(1, 100000));
  command->add_option("--warmup", o.warmup, "Steps before a first, unmeasured pass")->check(CLI::Range(0, 100000));
  command->add_option("--repeats", o.repeats, "Passes; the median counts")->check(CLI::Range(1, 1000));
  command->add_option("--dropout", o.dropout, "On residual branches")->check(CLI::Range(0.0, 0.95));
  command->add_option("--activation-dropout", o.activation_dropout, "After the activation")
      ->check(CLI::Range(0.0, 0.95));
  command->add_option("--attention-dropout", o.attention_dropout, "On attention weights")->check(CLI::Range(0.0, 0.95));
  command->add_option("--width", o.width, "Model width, a multiple of 64")->check(CLI::Range(64, 8192));
  command->add_option("--encoder-layers", o.encoder_layers, "Encoder layers")->check(CLI::Range(0, 200));
  command->add_option("--decoder-layers", o.decoder_layers, "Decoder layers")->check(CLI::Range(1, 200));
  command->add_option("--vocabulary", o.vocabulary, "Target tokens")->check(CLI::Range(8, 1000000));
  command->add_option("--device", a->device, "cpu or cuda; default: auto");
  command->add_option("--threads", a->threads, "Threads on the CPU; 0: all cores")->check(CLI::Range(0, 1024));
  command->add_flag("--losses", o.losses, "Put the loss of every step into the JSON file");
  command->add_option("--json", a->json, "File for the result");
  command->callback([a] {
    if (a->options.width % 64)
      throw ConfigError("--width: " + std::to_string(a->options.width) + " is no multiple of 64");
    const TrainBenchResult result = bench_train(a->options, make_context(a->device, a->threads));
    std::cout << result.to_string();
    if (!a->json.empty()) write_text_atomic(a->json, result.to_json(a->options) + "\n");
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure parts of the program");
  bench->require_subcommand(1);
  add_bench_io(*bench);
  add_bench_train(*bench);
  add_bench_kernels(*bench);
}

}  // namespace tactus
