#include "train/bench/train_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "core/files/json.h"
#include "core/profile_range.h"
#include "core/rng.h"
#include "train/bench/model_cost.h"
#include "train/loop/step_runner.h"
#include "train/optimiser/optimiser.h"
#include "train/tasks/speech_task.h"

namespace tactus {
namespace {

constexpr int64_t kBins = 80;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

RunOptions run_options(const TrainBenchOptions& o) {
  RunOptions run;
  run.dtype = o.dtype;
  run.model.width = o.width;
  run.model.features = kBins;
  EncoderOptions& encoder = run.model.encoder;
  encoder.layers = o.encoder_layers;
  encoder.heads = o.width / 64;
  encoder.ffn_dim = 4 * o.width;
  encoder.conv_channels = 2 * o.width;
  encoder.dropout = o.dropout, encoder.activation_dropout = o.activation_dropout;
  encoder.attention_dropout = o.attention_dropout;
  DecoderOptions& decoder = run.model.decoder;
  decoder.layers = o.decoder_layers;
  decoder.ffn_dim = 4 * o.width;
  decoder.projector_dim = o.width / 2;
  decoder.dropout = o.dropout, decoder.activation_dropout = o.activation_dropout;
  AttentionOptions& attention = decoder.attention;
  attention.type = o.attention;
  attention.heads = o.width / 64;
  attention.kv_heads = o.attention == "gqa" ? attention.heads / 4 : 0;
  attention.stride = o.stride;
  attention.kv_lora_rank = o.width / 2;
  attention.dropout = o.attention_dropout;
  run.optimiser.learning_rate = 1e-4;
  run.optimiser.beta2 = 0.98;
  run.optimiser.warmup_updates = 1;
  return run;
}

/// A batch of noise; what it holds depends on its number alone.
Batch made_up(const std::vector<int64_t>& lengths, int64_t number, int64_t vocabulary, DType dtype, HostPool& pool) {
  Batch b;
  b.index = number;
  b.bins = kBins;
  b.dtype = dtype;
  b.frame_lengths = lengths;
  Rng rng(mix_key(7, static_cast<uint64_t>(number)));
  for (size_t i = 0; i < lengths.size(); ++i) {
    b.utterances.push_back(static_cast<int32_t>(i));
    b.ids.emplace_back("noise");
    const int64_t tokens = std::max<int64_t>(lengths[i] / 22, 4);
    b.target_lengths.push_back(tokens);
    for (int64_t t = 0; t < tokens; ++t) {
      b.previous_tokens.push_back(t == 0 ? 2 : b.target_tokens.back());
      b.target_tokens.push_back(static_cast<int32_t>(4 + rng.below(static_cast<uint64_t>(vocabulary - 4))));
    }
  }
  const int64_t values = b.frames() * kBins;
  b.features = pool.acquire(values * size_of(dtype));
  // A uniform sum stands for a normal number: the cheapest that has mean 0 and deviation 1.
  for (int64_t i = 0; i < values; ++i) {
    const uint32_t bits = rng.next();
    const float x = (static_cast<float>(bits >> 16) + static_cast<float>(bits & 0xffff) - 65535.0f) / 26755.0f;
    if (dtype == DType::bf16) {
      b.features.as<bf16>()[i] = bf16(x);
    } else {
      b.features.as<float>()[i] = x;
    }
  }
  return b;
}

/// The same batch again, in memory of its own: a step takes its batch over.
Batch copy_of(const Batch& b, HostPool& pool) {
  Batch c;
  c.index = b.index, c.bins = b.bins, c.dtype = b.dtype;
  c.utterances = b.utterances, c.ids = b.ids, c.frame_lengths = b.frame_lengths, c.target_lengths = b.target_lengths;
  c.previous_tokens = b.previous_tokens, c.target_tokens = b.target_tokens;
  c.features = pool.acquire(b.features.bytes());
  std::copy_n(b.features.as<char>(), b.features.bytes(), c.features.as<char>());
  return c;
}

}  // namespace

std::vector<std::vector<int64_t>> bench_lengths(int64_t batches, int64_t max_frames) {
  Rng rng(1);
  // Enough utterances for the batches wanted at any limit: some 64 fill 40,000 frames.
  std::vector<int64_t> all(static_cast<size_t>(batches * std::max<int64_t>(2, max_frames / 600)));
  for (int64_t& n : all) {
    n = std::clamp<int64_t>(static_cast<int64_t>(std::exp(6.27 + 0.6 * rng.normal())), 100, 3000);
    n = std::min(n, max_frames);
  }
  std::sort(all.begin(), all.end());
  std::vector<std::vector<int64_t>> out(1);
  for (const int64_t n : all) {
    if (static_cast<int64_t>(out.back().size() + 1) * n > max_frames) out.emplace_back();
    out.back().push_back(n);
  }
  for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[rng.below(i)]);
  out.resize(std::min(out.size(), static_cast<size_t>(batches)));
  return out;
}

TrainBenchResult bench_train(const TrainBenchOptions& o, const Context& ctx) {
  const RunOptions run = run_options(o);
  SpeechTask task(ctx, run, o.vocabulary, 0, true);
  task.store().initialise(1);
  Optimiser optimiser(run.optimiser, task.store(), 1000000);
  StepRunner runner(task, optimiser);
  const std::shared_ptr<HostPool> pool = HostPool::make(ctx);
  std::vector<Batch> batches;
  TrainBenchResult result;
  double flops = 0;
  result.lengths = bench_lengths(o.batches, o.max_frames);
  for (const std::vector<int64_t>& lengths : result.lengths) {
    batches.push_back(made_up(lengths, static_cast<int64_t>(batches.size()), o.vocabulary, task.compute_type(), *pool));
    result.frames += batches.back().frames();
    result.tokens += batches.back().tokens();
    flops += training_flops(run.model, o.vocabulary, batches.back());
  }
  result.device = ctx.device_name();
  result.parameters = task.store().count();
  result.flops_per_frame = flops / static_cast<double>(result.frames);

  int64_t update = 0;
  double host = 0;
  const auto finish = [&] {
    const StepRunner::Result r = runner.finish();
    if (o.losses) result.losses.push_back(r.sums[kSumLoss] / static_cast<double>(r.tokens));
  };
  const auto step = [&](const Batch& from) {
    Batch batch = copy_of(from, *pool);
    const double begin = now();
    runner.add(std::move(batch), static_cast<uint64_t>(++update));
    const double end = now();
    host += end - begin;
    if (runner.pending()) finish();
    const double launch = now();
    runner.launch(update);
    host += now() - launch;
  };
  for (int64_t i = 0; i < o.warmup; ++i) step(batches[static_cast<size_t>(i) % batches.size()]);
  // Buffers for the largest shapes come with the first pass: it is part of the warm-up.
  for (const Batch& b : batches) step(b);
  if (runner.pending()) finish();
  ctx.synchronize();
  const int64_t allocations = ctx.allocator().use().device_allocations;
  ctx.allocator().reset_peaks();
  host = 0;
  for (int64_t r = 0; r < o.repeats; ++r) {
    const ProfileRange range("measured");
    const double begin = now();
    for (const Batch& b : batches) step(b);
    if (runner.pending()) finish();
    ctx.synchronize();
    result.each.push_back(static_cast<double>(result.frames) / (now() - begin));
  }
  std::vector<double> sorted = result.each;
  std::sort(sorted.begin(), sorted.end());
  result.frames_per_second = sorted[sorted.size() / 2];
  result.seconds_per_batch =
      static_cast<double>(result.frames) / result.frames_per_second / static_cast<double>(batches.size());
  result.host_seconds_per_batch = host / static_cast<double>(o.repeats * static_cast<int64_t>(batches.size()));
  result.model_tflops = result.flops_per_frame * result.frames_per_second / 1e12;
  const MemoryUse use = ctx.allocator().use();
  result.memory_peak = use.total_peak, result.memory_reserved = use.reserved;
  result.device_allocations = use.device_allocations - allocations;
  return result;
}

std::string TrainBenchResult::to_string() const {
  char text[768];
  std::snprintf(text, sizeof text,
                "device: %s\n"
                "model: %.1f M parameters, %.1f MFLOP a frame (forward and backward)\n"
                "%.0f frames/s, %.2f ms a batch (host %.2f ms), %.1f TFLOP/s of the model\n"
                "memory: peak %.0f MiB, reserved %.0f MiB, %lld device allocations after the warm-up\n",
                device.c_str(), static_cast<double>(parameters) / 1e6, flops_per_frame / 1e6, frames_per_second,
                1e3 * seconds_per_batch, 1e3 * host_seconds_per_batch, model_tflops,
                static_cast<double>(memory_peak) / (1 << 20), static_cast<double>(memory_reserved) / (1 << 20),
                static_cast<long long>(device_allocations));
  return text;
}

std::string TrainBenchResult::to_json(const TrainBenchOptions& o) const {
  JsonWriter json;
  json.begin_object().field("benchmark", "train").field("device", device).field("attention", o.attention);
  json.field("stride", o.stride).field("dtype", o.dtype).field("max_frames", o.max_frames);
  json.field("dropout", o.dropout).field("attention_dropout", o.attention_dropout).field("parameters", parameters);
  json.field("frames_per_second", frames_per_second).field("repeats", each);
  json.field("seconds_per_batch", seconds_per_batch).field("host_seconds_per_batch", host_seconds_per_batch);
  json.field("flops_per_frame", flops_per_frame).field("model_tflops", model_tflops);
  json.field("memory_peak", memory_peak).field("memory_reserved", memory_reserved);
  json.field("device_allocations", device_allocations);
  if (!losses.empty()) json.field("losses", losses);
  json.key("lengths").begin_array();
  for (const std::vector<int64_t>& batch : lengths) json.value(batch);
  json.end_array();
  return json.end_object().str();
}

}  // namespace tactus
