// Communication between ranks. One rank is the trivial implementation; others fill the same interface. Every call is
// collective: all ranks make it in the same order, a rank without data too.
#pragma once

#include <memory>

#include "core/tensor.h"

namespace tactus {

class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sums `t` (f32 or f64) over ranks in place.
  virtual void all_reduce_sum(const Tensor& t) = 0;
  /// Sums one host number over ranks.
  virtual double all_reduce_sum(double value) = 0;
  /// Copies `t` of rank `root` to every rank.
  virtual void broadcast(const Tensor& t, int root) = 0;
  virtual void barrier() = 0;
  /// The communicator of a run on one device.
  static std::unique_ptr<Comm> single();
};

}  // namespace tactus
