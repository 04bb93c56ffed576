// What the tape promises beyond gradients: readiness of parameters, release of saved tensors, refused uses.
#include "autograd/tape.h"

#include <gtest/gtest.h>

#include "autograd/dropout.h"
#include "autograd/layer_norm.h"
#include "autograd/linear.h"
#include "autograd/pointwise.h"
#include "autograd/recompute.h"
#include "core/segments.h"

namespace tactus {
namespace {

struct Model {
  Context ctx = Context::cpu(1);
  ParameterStore store;
  Parameter *w, *frozen, *gamma, *beta;
  Model() {
    w = &store.add("w", {4, 4}, Init::uniform(1));
    frozen = &store.add("frozen", {4, 4}, Init::uniform(1));
    gamma = &store.add("gamma", {4}, Init::ones());
    beta = &store.add("beta", {4}, Init::zeros());
    frozen->trainable = false;
    store.allocate(ctx, DType::f64, true);
    store.initialise(1);
  }
  Var input(Tape& tape) const { return tape.leaf(ctx.upload_real(std::vector<double>(12, 0.5), {3, 4}, DType::f64)); }
  std::vector<Tensor> ones() const { return {ctx.upload_real(std::vector<double>(12, 1), {3, 4}, DType::f64)}; }
};

Var dense(Tape& tape, const Var& x, Parameter& p) { return linear(tape, x, tape.parameter(p), {}); }

TEST(Tape, ParameterIsReadyAfterItsLastUse) {
  Model m;
  Tape tape(m.ctx);
  std::vector<std::string> ready;
  tape.on_parameter_ready([&](Parameter& p) { ready.push_back(p.name); });
  Var y = dense(tape, m.input(tape), *m.w);
  y = layer_norm(tape, y, tape.parameter(*m.gamma), tape.parameter(*m.beta), 1e-5);
  y = dense(tape, dense(tape, y, *m.frozen), *m.w);
  tape.backward({y}, m.ones());
  EXPECT_EQ(ready, (std::vector<std::string>{"gamma", "beta", "w"}));
  EXPECT_EQ(m.ctx.download_real(m.frozen->grad), std::vector<double>(16, 0));
}

TEST(Tape, RecomputeCountsTheParametersInside) {
  Model m;
  auto gradient = [&](bool again) {
    m.store.zero_grad();
    Tape tape(m.ctx);
    int ready = 0;
    tape.on_parameter_ready([&](Parameter&) { ++ready; });
    auto f = [&](Tape& t, const std::vector<Var>& in) { return std::vector<Var>{dense(t, in[0], *m.w)}; };
    const Var x = m.input(tape);
    // Inside twice and outside once: announced once, when all have run.
    Var y = again ? recompute(tape, recompute(tape, {x}, f), f)[0] : f(tape, f(tape, {x}))[0];
    y = dense(tape, y, *m.w);
    tape.backward({y}, m.ones());
    EXPECT_EQ(ready, 1);
    std::vector<double> all = m.ctx.download_real(m.w->grad);
    for (double v : m.ctx.download_real(x.grad())) all.push_back(v);
    return all;
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(Tape, RecomputeTrainsParametersOfConstantInputs) {
  Model m;
  Tape tape(m.ctx);
  const Var x = tape.constant(m.ones()[0]);
  auto f = [&](Tape& t, const std::vector<Var>& in) { return std::vector<Var>{dense(t, in[0], *m.w)}; };
  tape.backward(recompute(tape, {x}, f), m.ones());
  EXPECT_EQ(m.ctx.download_real(m.w->grad), std::vector<double>(16, 3));
}

TEST(Tape, GradientsOfParametersAccumulateOverMicroBatches) {
  Model m;
  auto step = [&] {
    Tape tape(m.ctx);
    const Var y = dense(tape, m.input(tape), *m.w);
    tape.backward({y}, m.ones());
  };
  step();
  const std::vector<double> once = m.ctx.download_real(m.w->grad);
  step();
  const std::vector<double> twice = m.ctx.download_real(m.w->grad);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
}

TEST(Tape, ValuesThatBackwardDoesNotNeedAreFreedInForward) {
  Model m;
  const Segments segments(m.ctx, {3});
  Tape tape(m.ctx);
  const Var x = m.input(tape);
  const int64_t before = m.ctx.allocator().use().total_live;
  Var y;
  {
    const Var branch = scale(tape, x, 2);
    y = dropout_add(tape, branch, x, {7, 0.5f}, segments);
  }
  EXPECT_EQ(m.ctx.allocator().use().total_live - before, 256) << "only the sum (one block) is alive, not the branch";
}

TEST(Tape, BackwardFreesWhatItSaved) {
  Model m;
  const int64_t before = m.ctx.allocator().use().total_live;
  {
    Tape tape(m.ctx);
    Var y = m.input(tape);
    for (int i = 0; i < 5; ++i) y = linear(tape, y, tape.parameter(*m.w), {}, {.relu = true});
    tape.backward({y}, m.ones());
    y = {};
    EXPECT_EQ(m.ctx.allocator().use().total_live, before);
  }
  EXPECT_EQ(m.ctx.allocator().use().total_live, before);
}

TEST(Tape, EvaluationRemembersNothing) {
  Model m;
  Tape tape(m.ctx, false);
  const Var y = dense(tape, m.input(tape), *m.w);
  EXPECT_FALSE(y.needs_grad());
  tape.backward({y}, m.ones());
  EXPECT_EQ(m.ctx.download_real(m.w->grad), std::vector<double>(16, 0));
}

TEST(Tape, RefusesWhatItCannotDo) {
  Model m;
  Tape tape(m.ctx);
  const Var x = m.input(tape), w = tape.parameter(*m.w);
  EXPECT_THROW(tape.backward(x), ShapeError);
  EXPECT_THROW(tape.give(w, m.ones()[0]), Error);
  EXPECT_THROW(linear(tape, Slice(x, 0, 3), w, {}), ShapeError);
  EXPECT_THROW(linear(tape, x, w, {}, {.out_begin = 2, .out_end = 5}), ShapeError);
  EXPECT_THROW(add(tape, x, w), ShapeError);
  EXPECT_THROW(gather_rows(tape, x, {0, 0}), ShapeError);
  EXPECT_THROW(gather_rows(tape, x, {3}), ShapeError);
  EXPECT_THROW(weighted_sum(tape, {x}, {1}), ShapeError);
}

}  // namespace
}  // namespace tactus
