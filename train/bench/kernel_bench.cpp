#include "train/bench/kernel_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/files/json.h"
#include "train/bench/kernel_bench_cases.h"
#include "train/bench/kernel_timer.h"

namespace tactus {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr KernelExtents kSmall{320, 256, 1 << 18};  // of the instance that is compared
constexpr int64_t kMostLaunches = 200;              // of a batch: launches wait in a queue of limited length
constexpr int64_t kFewestBatches = 3;

KernelExtents extents_of(const KernelBenchOptions& o) {
  KernelExtents e{o.rows, 64, 4 * (o.megabytes << 20) / size_of(o.dtype)};
  while (16 * e.square * e.square <= o.megabytes << 20) e.square *= 2;
  return e;
}

/// Largest |difference| over the largest |value|. Values that are not finite must agree.
double relative_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) throw Error("an output has another size than on the CPU");
  double difference = 0, largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool same = actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
    if (!std::isfinite(expected[i]) || !std::isfinite(actual[i])) {
      if (!same) throw Error("a value is " + std::to_string(actual[i]) + ", expected " + std::to_string(expected[i]));
      continue;
    }
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return difference == 0 ? 0 : difference / largest;
}

double error_of(const KernelCase& c, const Context& ctx, DType dtype) {
  const Context host = Context::cpu(ctx.threads());
  KernelData data(ctx, dtype, kSmall), reference(host, DType::f32, kSmall);
  const KernelLaunch actual = c.make(data), expected = c.make(reference);
  actual.launch();
  expected.launch();
  double worst = 0;
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    worst =
        std::max(worst, relative_error(ctx.download_real(actual.outputs[i]), host.download_real(expected.outputs[i])));
  }
  return worst;
}

void time_case(const KernelCase& c, const KernelBenchOptions& options, const Context& ctx, KernelMeasurement& result) {
  KernelData data(ctx, options.dtype, extents_of(options));
  std::vector<KernelLaunch> sets{c.make(data)};
  const int64_t limit = options.megabytes << 20, set_bytes = std::max<int64_t>(data.set_bytes(), 1);
  while (static_cast<int64_t>(sets.size()) * set_bytes < limit && sets.size() < kMostLaunches) {
    data.next_set();
    sets.push_back(c.make(data));
  }
  result.shape = sets[0].shape, result.bytes = sets[0].bytes, result.flops = sets[0].flops;
  size_t turn = 0;
  const auto launch = [&] { sets[turn++ % sets.size()].launch(); };
  launch();  // a first launch may load code and search for algorithms
  const double once = std::max(time_launches(ctx, 2, launch) / 2, 1e-9);
  const double in_batch = options.seconds / (10 * once);
  const auto launches = static_cast<int64_t>(std::clamp(in_batch, 1.0, static_cast<double>(kMostLaunches)));
  std::vector<double> times;
  double total = 0;
  while (total < options.seconds || std::ssize(times) < kFewestBatches) {
    times.push_back(time_launches(ctx, launches, launch) / static_cast<double>(launches));
    total += times.back() * static_cast<double>(launches);
  }
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  result.launches = launches * std::ssize(times);
  result.seconds = *middle;
  result.rate = (result.flops > 0 ? result.flops : result.bytes) / result.seconds;
}

KernelMeasurement measure(const KernelCase& c, const KernelBenchOptions& options, const Context& ctx) {
  KernelMeasurement result;
  result.kernel = c.name;
  result.rate = result.share = kNone;
  try {
    result.error = error_of(c, ctx, options.dtype);
    time_case(c, options, ctx, result);
  } catch (const std::exception& e) {
    result.failure = e.what();
    std::replace(result.failure.begin(), result.failure.end(), '\n', ' ');
    result.rate = kNone;
  }
  return result;
}

}  // namespace

KernelBenchResult bench_kernels(const KernelBenchOptions& options, const Context& ctx) {
  dispatch(ctx, options.dtype, []<class D, class T>() {});
  std::vector<KernelCase> all, wanted{{"ceiling_copy", copy_ceiling}, {"ceiling_gemm", gemm_ceiling}};
  add_row_kernels(all);
  add_index_kernels(all);
  add_dense_kernels(all);
  add_loss_kernels(all);
  add_attention_kernels(all);
  for (const KernelCase& c : all) {
    if (c.name.find(options.filter) != std::string::npos) wanted.push_back(c);
  }
  if (wanted.size() == 2) throw ConfigError("no kernel has \"" + options.filter + "\" in its name");
  KernelBenchResult result;
  result.device = ctx.device_name();
  for (const KernelCase& c : wanted) result.kernels.push_back(measure(c, options, ctx));
  result.bytes_per_second = result.kernels[0].rate, result.flops_per_second = result.kernels[1].rate;
  for (KernelMeasurement& k : result.kernels) {
    k.share = k.rate / (k.flops > 0 ? result.flops_per_second : result.bytes_per_second);
  }
  return result;
}

int64_t KernelBenchResult::failures() const {
  return std::count_if(kernels.begin(), kernels.end(), [](const KernelMeasurement& k) { return !k.failure.empty(); });
}

std::string KernelBenchResult::to_string() const {
  std::string text = "device: " + device + "\n";
  char line[256];
  std::snprintf(line, sizeof line, "%-35s %-28s %12s %17s %7s %9s\n", "kernel", "shape", "us", "rate", "share",
                "error");
  text += line;
  for (const KernelMeasurement& k : kernels) {
    if (!k.failure.empty()) {
      std::snprintf(line, sizeof line, "%-35s ", k.kernel.c_str());
      text += line + ("failed: " + k.failure) + "\n";
      continue;
    }
    const bool products = k.flops > 0;
    std::snprintf(line, sizeof line, "%-35s %-28s %12.2f %9.3f %-7s %5.1f %% %9.1e\n", k.kernel.c_str(),
                  k.shape.c_str(), 1e6 * k.seconds, k.rate / (products ? 1e12 : 1e9), products ? "TFLOP/s" : "GB/s",
                  100 * k.share, k.error);
    text += line;
  }
  return text;
}

std::string KernelBenchResult::to_json(const KernelBenchOptions& options) const {
  JsonWriter json;
  json.begin_object().field("benchmark", "kernels").field("device", device);
  json.field("dtype", tactus::to_string(options.dtype)).field("rows", options.rows);
  json.field("megabytes", options.megabytes).field("bytes_per_second", bytes_per_second);
  json.field("flops_per_second", flops_per_second).key("kernels").begin_array();
  for (const KernelMeasurement& k : kernels) {
    json.begin_object().field("kernel", k.kernel);
    if (!k.failure.empty()) {
      json.field("failure", k.failure).end_object();
      continue;
    }
    json.field("shape", k.shape).field("launches", k.launches).field("seconds", k.seconds);
    if (k.flops > 0) {
      json.field("flops", k.flops).field("flops_per_second", k.rate);
    } else {
      json.field("bytes", k.bytes).field("bytes_per_second", k.rate);
    }
    json.field("share", k.share).field("error", k.error).end_object();
  }
  return json.end_array().end_object().str();
}

}  // namespace tactus
