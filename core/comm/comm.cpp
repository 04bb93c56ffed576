#include "core/comm/comm.h"

namespace tactus {
namespace {

class SingleComm final : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce_sum(const Tensor&) override {}
  double all_reduce_sum(double value) override { return value; }
  void broadcast(const Tensor&, int root) override {
    if (root != 0) throw Error("broadcast: there is no rank " + std::to_string(root));
  }
  void barrier() override {}
};

}  // namespace

std::unique_ptr<Comm> Comm::single() { return std::make_unique<SingleComm>(); }

}  // namespace tactus
