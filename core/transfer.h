// Transfers that overlap with the device's work: batches on a copy stream of their own, and results that the host reads
// when they have arrived. On the CPU both are plain copies.
#pragma once

#include <array>
#include <memory>

#include "core/context.h"
#include "core/host_buffer.h"

namespace tactus {

/// Brings one large input after another to the device. Two device buffers take turns, so an input is copied while the
/// one before it is worked on.
class InputStream {
 public:
  explicit InputStream(const Context& ctx);
  ~InputStream();
  InputStream(const InputStream&) = delete;

  /// Starts the copy and lets the context's stream wait for it. The host memory is kept until the copy is done. The
  /// tensor is valid until the second upload after this one.
  Tensor upload(HostBuffer host, Shape shape, DType dtype);
  /// The work launched so far is the last that reads the newest upload.
  void consumed();

 private:
  struct Impl;
  Context ctx_;
  std::unique_ptr<Impl> impl_;
};

/// A few numbers on their way from the device to the host.
class Readback {
 public:
  explicit Readback(const Context& ctx, int64_t doubles);
  ~Readback();
  Readback(const Readback&) = delete;

  /// Copies the tensor of doubles behind the work launched so far. One start, then one wait.
  void start(const Tensor& values);
  bool started() const { return started_; }
  /// The numbers; waits until they have arrived.
  const double* wait();

 private:
  struct Impl;
  Context ctx_;
  std::unique_ptr<Impl> impl_;
  bool started_ = false;
};

}  // namespace tactus
