// tactus bench kernels.
#include <iostream>
#include <memory>

#include "core/files/files.h"
#include "train/bench/kernel_bench.h"
#include "train/cli/commands.h"
#include "train/tasks/speech_task.h"

namespace tactus {
namespace {

struct KernelArguments {
  KernelBenchOptions options;
  std::string dtype, device = "auto", json;
  int64_t megabytes = 0;
};

void run_bench(KernelArguments& a) {
  const Context ctx = make_context(a.device, 0);
  const bool cuda = ctx.device() == Device::cuda;
  a.options.dtype = a.dtype.empty() ? (cuda ? DType::bf16 : DType::f32) : float_type_from_string(a.dtype);
  a.options.megabytes = a.megabytes > 0 ? a.megabytes : cuda ? 256 : 32;
  const KernelBenchResult result = bench_kernels(a.options, ctx);
  std::cout << result.to_string();
  if (!a.json.empty()) write_text_atomic(a.json, result.to_json(a.options) + "\n");
  if (result.failures() > 0) {
    throw Error("bench kernels: " + std::to_string(result.failures()) + " of " + std::to_string(result.kernels.size()) +
                " failed");
  }
}

}  // namespace

void add_bench_kernels(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("kernels", "Each kernel: its time, share of the device's best, and error");
  auto a = std::make_shared<KernelArguments>();
  KernelBenchOptions& o = a->options;
  command->add_option("--device", a->device, "cpu or cuda; default: auto");
  command->add_option("--dtype", a->dtype, "bf16, f32 or f64; default: bf16 on CUDA, f32 on the CPU")
      ->check(CLI::IsMember({"bf16", "f32", "f64"}));
  command->add_option("--filter", o.filter, "Only kernels with this text in their name, and the ceilings");
  command->add_option("--seconds", o.seconds, "How long to measure each kernel")->check(CLI::PositiveNumber);
  command->add_option("--rows", o.rows, "Rows of a batch")->check(CLI::Range(int64_t{64}, int64_t{1000000}));
  command
      ->add_option("--megabytes", a->megabytes,
                   "Memory that launches go through in turn, more than the caches hold; default: 256 on CUDA, 32 on "
                   "the CPU")
      ->check(CLI::Range(int64_t{1}, int64_t{16384}));
  command->add_option("--json", a->json, "File for the result");
  command->callback([a] { run_bench(*a); });
}

}  // namespace tactus
