// Kernels without an autograd function, each run on small random data; the same run serves value tests on the CPU and
// comparisons of CUDA with the CPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/rng.h"

namespace tactus::testing_ops {

struct KernelResult {
  std::vector<std::vector<double>> real;    ///< compared with a tolerance
  std::vector<std::vector<int32_t>> exact;  ///< compared exactly
};

struct KernelRun {
  std::string name;
  std::function<KernelResult(const Context&, DType)> run;
};

const std::vector<KernelRun>& kernel_runs();

/// n standard normal values rounded to bf16, so that all types hold them exactly.
std::vector<double> rounded_normals(Rng& rng, int64_t n, double deviation = 1);

}  // namespace tactus::testing_ops
