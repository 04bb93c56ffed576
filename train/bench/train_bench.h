// Measures the training step of the speech translation model on made-up batches with the lengths of a speech corpus.
#pragma once

#include <string>
#include <vector>

#include "core/context.h"
#include "train/loop/options.h"

namespace tactus {

struct TrainBenchOptions {
  std::string attention = "mtla";  ///< mha, mqa, gqa, mla or mtla
  int64_t stride = 2;              ///< of mtla
  std::string dtype = "bf16";
  int64_t max_frames = 40000;  ///< of a batch, as its number of utterances times the longest
  int64_t batches = 40;
  int64_t warmup = 12;
  int64_t repeats = 3;  ///< passes over the batches; the median counts
  double dropout = 0.15, activation_dropout = 0.15, attention_dropout = 0;
  int64_t width = 512, encoder_layers = 12, decoder_layers = 9, vocabulary = 8000;
  bool losses = false;  ///< the loss of each step goes to the result
};

struct TrainBenchResult {
  std::string device;
  int64_t parameters = 0, frames = 0, tokens = 0;
  double frames_per_second = 0;  ///< median over the repeats
  std::vector<double> each;      ///< frames/s of each repeat
  double seconds_per_batch = 0;
  double host_seconds_per_batch = 0;  ///< until the last launch of a step, without waiting for the device
  double flops_per_frame = 0;         ///< of the model's matrix products and attention, forward and backward
  double model_tflops = 0;            ///< that, a second
  int64_t memory_peak = 0, memory_reserved = 0;
  int64_t device_allocations = 0;             ///< after the warm-up
  std::vector<double> losses;                 ///< per target token
  std::vector<std::vector<int64_t>> lengths;  ///< frames of each batch's utterances
  std::string to_string() const;
  std::string to_json(const TrainBenchOptions& options) const;
};

/// Frame counts of batches: log-normal (mean of the logarithm 6.27, deviation 0.6, clipped to 100 .. 3000, mean about
/// 620), sorted and cut so that count * longest <= max_frames, then shuffled. An utterance has frames / 22 target
/// tokens, at least 4.
std::vector<std::vector<int64_t>> bench_lengths(int64_t batches, int64_t max_frames);

/// Full steps: features from page-locked memory, forward, backward, clipping and Adam.
TrainBenchResult bench_train(const TrainBenchOptions& options, const Context& ctx);

}  // namespace tactus
