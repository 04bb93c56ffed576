// Time of filter banks on one thread: "FRAMES NS_PER_FRAME" over all files, the fastest of some passes.
// usage: fbank_bench PASSES FILE...
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "data/audio/fbank.h"
#include "data/audio/read_audio.h"

int main(int argc, char** argv) try {
  if (argc < 3) throw tactus::ConfigError("usage: fbank_bench PASSES FILE...");
  std::vector<std::vector<float>> waves;
  for (int i = 2; i < argc; ++i) waves.push_back(tactus::read_audio(argv[i]));
  const tactus::Fbank fbank({});
  double fastest = 1e300;
  int64_t frames = 0;
  for (int pass = std::max(1, std::atoi(argv[1])); pass > 0; --pass) {
    frames = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const std::vector<float>& wave : waves) frames += static_cast<int64_t>(fbank.compute(wave).size()) / 80;
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, took.count());
  }
  std::printf("%lld %.1f\n", static_cast<long long>(frames),
              fastest / static_cast<double>(std::max<int64_t>(frames, 1)));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "fbank_bench: %s\n", e.what());
  return 1;
}
