#include <cmath>

#include "autograd/attention.h"
#include "autograd/mtla.h"
#include "tests/ops/case.h"

namespace tactus::testing_ops {
namespace {

/// One way of calling attention. With `fused` q, k and v are windows of one projection.
struct Attention {
  std::string name;
  int heads, kv_heads, d_key, d_shared, d_value, stride;
  bool causal;
  std::vector<int64_t> prompt, own;  ///< prompt empty: none
  float p = 0;
  bool fused = false, large = false;
};

KeyInput key_input(Bench& b, const Attention& a, int64_t rows) {
  KeyInput in;
  in.k = b.input({rows, a.kv_heads * a.d_key});
  if (a.d_shared > 0) in.shared = b.input({rows, a.d_shared});
  in.v = b.input({rows, a.kv_heads * a.d_value});
  return in;
}

std::vector<Var> build_attention(Bench& b, const Attention& a) {
  AttentionShape shape{a.heads, a.kv_heads, a.d_key, a.d_shared, a.d_value, a.stride, a.causal};
  shape.scale = 1 / std::sqrt(static_cast<double>(a.d_key + a.d_shared));
  if (a.p > 0) shape.dropout = b.dropout(a.p);
  const Segments own_segments = b.segments(a.own);
  const int64_t rows = own_segments.rows(), q_cols = a.heads * (a.d_key + a.d_shared);
  const int64_t k_cols = a.kv_heads * a.d_key, v_cols = a.kv_heads * a.d_value;
  Slice q;
  KeyInput own, prompt;
  if (a.fused) {
    const Var all = b.input({rows, q_cols + k_cols + v_cols + a.d_shared + 2});
    q = Slice(all, 1, 1 + q_cols);
    own.k = Slice(all, q.end, q.end + k_cols);
    own.v = Slice(all, own.k.end, own.k.end + v_cols);
    if (a.d_shared > 0) own.shared = Slice(all, own.v.end, own.v.end + a.d_shared);
  } else {
    q = b.input({rows, q_cols});
    own = key_input(b, a, rows);
  }
  if (a.prompt.empty()) return {attention(b.tape, shape, q, {}, own, nullptr, own_segments)};
  const Segments prompt_segments = b.segments(a.prompt);
  prompt = key_input(b, a, prompt_segments.rows());
  return {attention(b.tape, shape, q, prompt, own, &prompt_segments, own_segments)};
}

void add_attention(std::vector<OpCase>& cases) {
  const std::vector<int64_t> own{4, 0, 1, 6}, prompt{5, 3, 0, 2};
  std::vector<Attention> list = {
      {"causal", 2, 2, 4, 0, 3, 1, true, {}, {5, 0, 1, 7}},
      {"full", 2, 2, 4, 0, 4, 1, false, {}, {5, 0, 1, 7}},
      {"full_prompt", 2, 2, 3, 0, 5, 1, false, prompt, own},
      {"full_stride", 2, 2, 4, 0, 4, 3, false, prompt, own},
      {"grouped", 6, 2, 4, 0, 4, 1, true, prompt, own},
      {"one_key_head", 4, 1, 4, 2, 4, 2, true, prompt, own},
      {"odd", 3, 3, 5, 3, 7, 2, true, prompt, own},
      {"one_column", 1, 1, 1, 0, 1, 1, true, {}, {3, 2}},
      {"one_row_each", 2, 1, 4, 0, 4, 1, true, {}, {1, 1, 1}},
      {"stride_beyond", 2, 2, 4, 0, 4, 9, true, {2, 0}, {4, 3}},
      {"nothing", 2, 2, 4, 0, 4, 1, true, {}, {0, 0}},
      {"own_empty", 2, 2, 4, 0, 4, 2, true, {3, 2}, {0, 0}},
      {"dropout", 2, 2, 4, 0, 4, 1, true, {}, {9, 3}, 0.3f},
      {"dropout_prompt", 4, 2, 4, 2, 4, 2, true, prompt, own, 0.2f},
      {"dropout_full", 2, 2, 4, 0, 4, 1, false, {}, {11, 1}, 0.5f},
      {"fused", 2, 2, 4, 0, 4, 1, true, {}, {5, 2}, 0, true},
      {"fused_shared", 4, 2, 4, 2, 6, 3, true, prompt, own, 0.1f, true},
      {"long_causal", 2, 2, 64, 0, 64, 1, true, {}, {150, 1, 63, 64, 65}, 0, true, true},
      {"long_full", 4, 4, 32, 0, 32, 1, false, {}, {129, 30}, 0.1f, false, true},
      {"long_prompt", 4, 1, 64, 32, 64, 2, true, {131, 40}, {70, 33}, 0.1f, false, true},
      {"long_stride", 2, 2, 128, 0, 128, 4, true, {90, 0}, {40, 130}, 0, false, true},
      {"long_latent", 2, 2, 128, 64, 128, 2, true, {70}, {66}, 0, false, true},
      {"many_segments", 1, 1, 4, 0, 4, 1, true, {}, std::vector<int64_t>(2000, 2), 0, false, true},
  };
  for (int stride = 1; stride <= 4; ++stride) {
    const std::string n = std::to_string(stride);
    list.push_back({"stride" + n, 2, 2, 4, 2, 4, stride, true, prompt, own});
    list.push_back({"stride" + n + "_alone", 2, 1, 4, 0, 4, stride, true, {}, {7, 0, 1, 2, 8}});
  }
  for (const Attention& a : list) {
    cases.push_back({.name = "attention_" + a.name,
                     .op = "attention",
                     .build = [a](Bench& b) { return build_attention(b, a); },
                     .large = a.large,
                     .extreme = a.name == "causal"});
  }
}

struct Gate {
  std::string name;
  int64_t width, hidden;
  int stride;
  std::vector<int64_t> prompt, own;
  bool own_only = false, large = false;
};

std::vector<Var> build_gate(Bench& b, const Gate& g) {
  int64_t chunks = 1;
  for (size_t i = 0; i < g.own.size(); ++i) {
    const int64_t total = g.own[i] + (g.prompt.empty() ? 0 : g.prompt[i]);
    chunks = std::max(chunks, (total + g.stride - 1) / g.stride);
  }
  const Var code = b.input({chunks + 1, g.hidden});
  const Segments own_segments = b.segments(g.own);
  GateInput own, prompt;
  own.c = b.input({own_segments.rows(), g.width});
  own.p = b.input({own_segments.rows(), g.hidden});
  if (g.prompt.empty()) return {gate_sum(b.tape, {}, own, code, nullptr, own_segments, g.stride).own};
  const Segments prompt_segments = b.segments(g.prompt);
  prompt.c = b.input({prompt_segments.rows(), g.width});
  prompt.p = b.input({prompt_segments.rows(), g.hidden});
  const GateSum sums = gate_sum(b.tape, prompt, own, code, &prompt_segments, own_segments, g.stride);
  if (g.own_only) return {sums.own};
  return {sums.prompt, sums.own};
}

void add_gate_sum(std::vector<OpCase>& cases) {
  const std::vector<int64_t> own{4, 1, 0, 6}, prompt{5, 0, 3, 1};
  std::vector<Gate> list = {{"one_column", 1, 1, 2, {}, {3, 2}},
                            {"wide", 80, 6, 2, prompt, own},
                            {"odd", 257, 3, 3, {}, {2, 4}},
                            {"own_only", 3, 2, 2, prompt, own, true},
                            {"stride_beyond", 3, 2, 11, prompt, own},
                            {"nothing", 3, 2, 2, {}, {0, 0}},
                            {"own_empty", 3, 2, 2, {3, 2}, {0, 0}},
                            {"long", 64, 32, 4, {61, 200}, {130, 3}, false, true},
                            {"many_rows", 2, 2, 2, {}, {35000, 35001}, false, true}};
  for (int stride = 1; stride <= 4; ++stride) {
    list.push_back({"stride" + std::to_string(stride), 3, 4, stride, prompt, own});
    list.push_back({"stride" + std::to_string(stride) + "_alone", 3, 4, stride, {}, {7, 0, 1, 4}});
  }
  for (const Gate& g : list) {
    cases.push_back({.name = "gate_sum_" + g.name,
                     .op = "gate_sum",
                     .build = [g](Bench& b) { return build_gate(b, g); },
                     .large = g.large,
                     .saturates = true});
  }
}

}  // namespace

void add_sequence_cases(std::vector<OpCase>& cases) {
  add_attention(cases);
  add_gate_sum(cases);
}

}  // namespace tactus::testing_ops
