#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/context.h"

namespace tactus::testing_ops {

/// The CUDA context that all tests share. Never destroyed: the driver may shut down before static objects do.
inline const Context& cuda() {
  static const Context* ctx = new Context(Context::cuda(0));
  return *ctx;
}

/// Base of suites that need a CUDA device: skipped without one, failed where one is required.
template <class Base>
class NeedsCuda : public Base {
 protected:
  void SetUp() override {
    if (Context::cuda_available()) return;
    if (std::getenv("TACTUS_REQUIRE_GPU")) FAIL() << "TACTUS_REQUIRE_GPU is set but there is no CUDA device";
    GTEST_SKIP() << "no CUDA device";
  }
};

}  // namespace tactus::testing_ops
