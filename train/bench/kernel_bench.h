// Measures each kernel by itself: time, share of what the device can do, and error against the CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/context.h"

namespace tactus {

struct KernelBenchOptions {
  DType dtype = DType::f32;
  std::string filter;       ///< part of a kernel's name; empty: all
  double seconds = 0.2;     ///< of measuring, for each kernel
  int64_t rows = 10000;     ///< rows of a batch
  int64_t megabytes = 256;  ///< memory that launches go through in turn, so that no cache holds it. Ceilings: the copy
                            ///< takes four times as much, the product's matrices have at most a quarter as many values
};

struct KernelMeasurement {
  std::string kernel, shape;
  int64_t launches = 0;  ///< timed ones
  double seconds = 0;    ///< of one launch: median over batches of launches
  double bytes = 0;      ///< inputs read once, outputs written once; 0 where operations count
  double flops = 0;      ///< 0 where bytes count
  double rate = 0;       ///< bytes or operations per second
  double share = 0;      ///< of the ceiling; NaN where there is none
  double error = 0;      ///< largest |difference| to f32 on the CPU over the largest |value|, of a smaller instance
  std::string failure;   ///< why there are no numbers
};

struct KernelBenchResult {
  std::string device;
  double bytes_per_second = 0, flops_per_second = 0;  ///< ceilings: a copy and a large matrix product; NaN: none
  std::vector<KernelMeasurement> kernels;             ///< the two ceilings first
  int64_t failures() const;
  std::string to_string() const;
  std::string to_json(const KernelBenchOptions& options) const;
};

/// ConfigError where the device has no kernels for the type or no kernel has such a name. A kernel that throws is a
/// line of the result.
KernelBenchResult bench_kernels(const KernelBenchOptions& options, const Context& ctx);

}  // namespace tactus
