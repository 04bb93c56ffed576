#include <array>

#include "autograd/conv1d.h"
#include "autograd/embedding.h"
#include "autograd/layer_mix.h"
#include "autograd/layer_norm.h"
#include "autograd/linear.h"
#include "kernels/embedding.h"
#include "tests/ops/case.h"

namespace tactus::testing_ops {
namespace {

std::string sized(const std::string& name, std::initializer_list<int64_t> extents) {
  std::string s = name;
  for (int64_t e : extents) s += "_" + std::to_string(e);
  return s;
}

/// Far enough from 0 on either side that no pre-activation of unit-variance inputs crosses it.
double off_zero_bias(int64_t i, int64_t in) { return (i % 2 ? -1.0 : 1.0) * (4 + static_cast<double>(in)); }

void add_linear(std::vector<OpCase>& cases) {
  for (auto [rows, in, out] :
       {std::array<int64_t, 3>{5, 3, 4}, {0, 3, 2}, {1, 1, 1}, {7, 80, 3}, {3, 257, 5}, {4, 5, 257}}) {
    cases.push_back({sized("linear", {rows, in, out}), "linear", [=](Bench& b) -> std::vector<Var> {
                       const Var x = b.input({rows, in}), w = b.input({out, in}, 0.3), bias = b.input({out});
                       return {linear(b.tape, x, w, bias)};
                     }});
    cases.push_back({sized("linear_relu", {rows, in, out}), "linear", [=](Bench& b) -> std::vector<Var> {
                       const Var x = b.input_of({rows, in}, [&](int64_t) { return 2 * b.rng.uniform() - 1; });
                       const Var w = b.input_of({out, in}, [&](int64_t) { return 2 * b.rng.uniform() - 1; });
                       const Var bias = b.input_of({out}, [&](int64_t i) { return off_zero_bias(i, in); });
                       return {linear(b.tape, x, w, bias, {.relu = true})};
                     }});
  }
  cases.push_back({"linear_no_bias", "linear", [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({6, 8}), w = b.input({3, 8});
                     return {linear(b.tape, x, w, {})};
                   }});
  cases.push_back({"linear_windows", "linear", [](Bench& b) -> std::vector<Var> {
                     // Two column windows of one Var into two row windows of one weight, as in fused projections.
                     const Var x = b.input({6, 19}), w = b.input({7, 8}, 0.3), bias = b.input({7});
                     return {linear(b.tape, Slice(x, 1, 9), w, bias, {.out_begin = 0, .out_end = 3}),
                             linear(b.tape, Slice(x, 11, 19), w, bias, {.out_begin = 3, .out_end = 7})};
                   }});
  cases.push_back({"linear_shared_weight", "linear", [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({4, 6}), w = b.input({6, 6}, 0.3), bias = b.input({6});
                     return {linear(b.tape, linear(b.tape, x, w, bias), w, bias)};
                   }});
  cases.push_back({"linear_frozen_weight", "linear", [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({4, 6});
                     const Tensor w = b.ctx().upload_real(std::vector<double>(18, 0.25), {3, 6}, b.dtype);
                     return {linear(b.tape, x, b.tape.constant(w), {})};
                   }});
  cases.push_back({"linear_frozen_input", "linear", [](Bench& b) -> std::vector<Var> {
                     const Tensor x = b.ctx().upload_real(std::vector<double>(12, 0.5), {2, 6}, b.dtype);
                     const Var w = b.input({3, 6}), bias = b.input({3});
                     return {linear(b.tape, b.tape.constant(x), w, bias)};
                   }});
  cases.push_back({.name = "linear_many_rows",
                   .op = "linear",
                   .build = [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({70001, 2}), w = b.input({2, 2}), bias = b.input({2});
                     return {linear(b.tape, x, w, bias)};
                   },
                   .large = true});
}

struct Convolution {
  const char* name;
  std::vector<int64_t> lengths;
  int64_t channels, out;
  int kernel, stride, pad;
  bool bias = true, large = false;
};

void add_conv1d(std::vector<OpCase>& cases) {
  const std::vector<Convolution> list = {
      {"plain", {7, 4, 9}, 3, 4, 3, 1, 1},     {"strided", {8, 0, 1, 5, 2}, 4, 3, 5, 2, 2},
      {"no_pad", {2, 6, 0, 3}, 1, 2, 3, 2, 0}, {"even_kernel", {5, 1, 4}, 3, 1, 4, 3, 1},
      {"wide", {3, 5}, 80, 7, 5, 2, 2},        {"one_tap", {4, 3}, 5, 3, 1, 1, 0, false},
      {"nothing", {0, 0}, 3, 2, 3, 2, 1},      {"many_rows", {40000, 30001}, 1, 1, 3, 1, 1, true, true}};
  for (const Convolution& c : list) {
    cases.push_back({.name = std::string("conv1d_") + c.name,
                     .op = "conv1d",
                     .build = [c](Bench& b) -> std::vector<Var> {
                       std::vector<int64_t> out;
                       for (int64_t n : c.lengths) out.push_back(conv1d_length(n, c.kernel, c.stride, c.pad));
                       const Segments in = b.segments(c.lengths);
                       const Var x = b.input({in.rows(), c.channels}), w = b.input({c.out, c.kernel * c.channels}, 0.3);
                       const Var bias = c.bias ? b.input({c.out}) : Var{};
                       return {conv1d(b.tape, x, in, b.segments(out), w, bias, c.kernel, c.stride, c.pad)};
                     },
                     .large = c.large});
  }
}

void add_embedding(std::vector<OpCase>& cases) {
  for (auto [rows, vocabulary, width] :
       {std::array<int64_t, 3>{9, 5, 3}, {0, 4, 2}, {1, 1, 1}, {40, 3, 80}, {6, 300, 257}}) {
    cases.push_back({sized("embedding", {rows, vocabulary, width}), "embedding", [=](Bench& b) -> std::vector<Var> {
                       const auto ids = b.integers(rows, vocabulary);
                       const Var table = b.input({vocabulary, width});
                       return {embedding(b.tape, table, TokenIndex::make(b.ctx(), ids, vocabulary), 1.5)};
                     }});
  }
  cases.push_back({.name = "embedding_many_rows",
                   .op = "embedding",
                   .build = [](Bench& b) -> std::vector<Var> {
                     const auto ids = b.integers(70001, 11);
                     const Var table = b.input({11, 2});
                     return {embedding(b.tape, table, TokenIndex::make(b.ctx(), ids, 11), 0.5)};
                   },
                   .large = true});
}

void add_layer_mix(std::vector<OpCase>& cases) {
  for (auto [rows, layers, width] :
       {std::array<int64_t, 3>{5, 3, 7}, {0, 2, 4}, {1, 1, 1}, {40, 25, 80}, {3, 4, 257}, {600, 2, 16}}) {
    cases.push_back({sized("layer_mix", {rows, layers, width}), "layer_mix", [=](Bench& b) -> std::vector<Var> {
                       const Var x = b.input({rows, layers * width}), logits = b.input({layers});
                       return {layer_mix(b.tape, x, logits)};
                     }});
  }
  cases.push_back({.name = "layer_mix_many_rows",
                   .op = "layer_mix",
                   .build = [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({70001, 6}), logits = b.input({3});
                     return {layer_mix(b.tape, x, logits)};
                   },
                   .large = true});
}

void add_layer_norm(std::vector<OpCase>& cases) {
  for (auto [rows, cols] : {std::array<int64_t, 2>{5, 3}, {0, 4}, {4, 1}, {3, 80}, {2, 257}, {130, 6}, {3, 512}}) {
    cases.push_back({.name = sized("layer_norm", {rows, cols}),
                     .op = "layer_norm",
                     .build = [=](Bench& b) -> std::vector<Var> {
                       const Var x = b.input({rows, cols}, 2), gamma = b.input({cols}), beta = b.input({cols});
                       return {layer_norm(b.tape, x, gamma, beta, 1e-5)};
                     },
                     .extreme = rows > 0});
  }
  cases.push_back({"layer_norm_window", "layer_norm", [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({6, 13}), gamma = b.input({5}), beta = b.input({5});
                     return {layer_norm(b.tape, Slice(x, 1, 6), gamma, beta, 1e-5),
                             layer_norm(b.tape, Slice(x, 7, 12), gamma, beta, 1e-5)};
                   }});
  cases.push_back({.name = "layer_norm_many_rows",
                   .op = "layer_norm",
                   .build = [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({70001, 4}), gamma = b.input({4}), beta = b.input({4});
                     return {layer_norm(b.tape, x, gamma, beta, 1e-2)};
                   },
                   .large = true});
}

}  // namespace

void add_dense_cases(std::vector<OpCase>& cases) {
  add_linear(cases);
  add_conv1d(cases);
  add_embedding(cases);
  add_layer_mix(cases);
  add_layer_norm(cases);
}

}  // namespace tactus::testing_ops
