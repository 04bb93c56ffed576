// Measures how fast batches come out of a corpus.
#pragma once

#include <cstdint>
#include <string>

#include "core/context.h"
#include "data/batches/batch_loader.h"

namespace tactus {

struct IoBenchOptions {
  std::string corpus;           ///< empty: a made-up one
  int64_t synthetic = 2000000;  ///< frames of the made-up corpus
  std::string split = "train";
  LoaderOptions loader;
  DType dtype = DType::f32;
  int64_t max_frames = 40000;
  double seconds = 5;
};

struct IoBenchResult {
  std::string corpus;
  int64_t utterances = 0, bins = 0;
  int64_t batches = 0, frames = 0;
  double seconds = 0;
  double frames_per_second = 0;
  double stored_bytes_per_second = 0;  ///< of frames as 16-bit numbers
  double audio_seconds_per_second = 0;
  bool pinned = false;
  HostPool::Use memory;
  std::string to_string() const;
  std::string to_json(const IoBenchOptions& options) const;
};

/// Writes a corpus of noise: utterances of 1 to 16 seconds, 80 bins. DataError or Error when that fails.
void write_noise_corpus(const std::string& path, int64_t frames);

/// Reads the split once, so that it lies in the page cache, then takes training batches, normalised and augmented, for
/// the time asked for. A made-up corpus lies in a temporary folder meanwhile. ConfigError for a split of text.
IoBenchResult bench_io(const IoBenchOptions& options, const Context& ctx);

}  // namespace tactus
