#include "autograd/dropout.h"
#include "autograd/layer_norm.h"
#include "autograd/linear.h"
#include "autograd/losses.h"
#include "autograd/pointwise.h"
#include "autograd/recompute.h"
#include "tests/ops/case.h"

namespace tactus::testing_ops {
namespace {

struct Entropy {
  const char* name;
  int64_t rows, vocabulary;
  double smoothing;
  bool weighted = false, ignored = false, large = false;
};

void add_cross_entropy(std::vector<OpCase>& cases) {
  const std::vector<Entropy> list = {{"plain", 6, 5, 0},
                                     {"smoothed", 6, 5, 0.1},
                                     {"weighted", 7, 3, 0.1, true, true},
                                     {"ignored", 9, 80, 0.2, false, true},
                                     {"two_tokens", 3, 2, 0.1},
                                     {"odd", 4, 257, 0.1, true},
                                     {"one_token", 3, 1, 0},
                                     {"no_rows", 0, 7, 0.1},
                                     {"wide", 3, 5003, 0.1, false, false, true},
                                     {"many_rows", 70001, 3, 0.1, false, true, true}};
  for (const Entropy& e : list) {
    cases.push_back({.name = std::string("cross_entropy_") + e.name,
                     .op = "cross_entropy",
                     .build = [e](Bench& b) -> std::vector<Var> {
                       auto targets = b.integers(e.rows, e.vocabulary);
                       for (size_t i = 0; e.ignored && i < targets.size(); i += 3) targets[i] = -1;
                       const Tensor weight = e.weighted ? b.constant({e.rows}, 0.2, 1) : Tensor{};
                       const Var logits = b.input({e.rows, e.vocabulary}, 2);
                       return {cross_entropy(b.tape, logits, b.upload(targets), e.smoothing, weight).loss};
                     },
                     .large = e.large,
                     .extreme = e.rows > 0});
  }
}

struct Ctc {
  const char* name;
  std::vector<int64_t> frames, labels;
  int64_t symbols;
  int blank;
  bool zero_infinity = false, repeats = false, large = false;
};

void add_ctc(std::vector<OpCase>& cases) {
  const std::vector<Ctc> list = {{"plain", {6, 4, 9}, {2, 1, 4}, 5, 0},
                                 {"blank_last", {5, 7}, {2, 3}, 4, 3},
                                 {"repeats", {9, 8}, {4, 3}, 4, 0, false, true},
                                 {"exact_fit", {3, 5}, {3, 2}, 6, 0},
                                 {"empty_labels", {4, 1, 3}, {0, 0, 1}, 3, 0},
                                 {"infeasible", {2, 6, 0, 1, 0}, {4, 2, 1, 1, 0}, 5, 0, true},
                                 {"one_frame", {1, 1}, {1, 0}, 3, 1},
                                 {"nothing", {0, 0}, {0, 0}, 3, 0, true},
                                 {"long", {60, 31}, {17, 9}, 60, 0, false, false, true}};
  for (const Ctc& c : list) {
    cases.push_back(
        {.name = std::string("ctc_loss_") + c.name,
         .op = "ctc_loss",
         .build = [c](Bench& b) -> std::vector<Var> {
           const Segments frames = b.segments(c.frames), targets = b.segments(c.labels);
           // Labels skip the blank, and differ from their neighbours unless repeats are wanted.
           std::vector<int32_t> labels;
           for (int64_t i = 0; i < targets.rows(); ++i) {
             const int32_t kind = static_cast<int32_t>(c.repeats ? i / 2 : i) % static_cast<int32_t>(c.symbols - 1);
             labels.push_back(kind >= c.blank ? kind + 1 : kind);
           }
           const Var logits = b.input({frames.rows(), c.symbols}, 1.5);
           return {ctc_loss(b.tape, logits, frames, targets, b.upload(labels), c.blank, c.zero_infinity).loss};
         },
         .large = c.large,
         .saturates = c.zero_infinity,
         .extreme = std::string(c.name) == "plain"});
  }
}

/// A feed-forward block with dropout, for recompute.
std::vector<Var> block(Tape& tape, const std::vector<Var>& in, DropoutKey key, const Segments& segments) {
  const Var h = layer_norm(tape, in[0], in[1], in[2], 1e-5);
  const Var y = linear(tape, h, in[3], in[4]);
  return {dropout_add(tape, y, in[0], key, segments), h};
}

void add_composites(std::vector<OpCase>& cases) {
  cases.push_back({"weighted_sum", "weighted_sum", [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({1}), y = b.input({1});
                     return {weighted_sum(b.tape, {x, y, x}, {0.7, -0.3, 2})};
                   }});
  cases.push_back({"weighted_sum_of_losses", "weighted_sum", [](Bench& b) -> std::vector<Var> {
                     const Segments frames = b.segments({4, 3}), targets = b.segments({1, 1});
                     const Var x = b.input({7, 4});
                     const CtcLoss ctc = ctc_loss(b.tape, x, frames, targets, b.upload({1, 2}), 0, true);
                     const CrossEntropy ce = cross_entropy(b.tape, x, b.upload({0, 1, 2, 3, 0, 1, -1}), 0.1);
                     return {weighted_sum(b.tape, {ctc.loss, ce.loss}, {0.3, 0.7})};
                   }});
  auto inputs = [](Bench& b, int64_t rows) -> std::vector<Var> {
    return {b.input({rows, 6}), b.input({6}), b.input({6}), b.input({6, 6}, 0.4), b.input({6})};
  };
  cases.push_back({"recompute_block", "recompute", [inputs](Bench& b) {
                     const Segments segments = b.segments({3, 0, 5});
                     return recompute(b.tape, inputs(b, 8),
                                      [key = b.dropout(0.3f), segments](Tape& tape, const auto& in) {
                                        return block(tape, in, key, segments);
                                      });
                   }});
  cases.push_back({"recompute_twice", "recompute", [inputs](Bench& b) {
                     // Two blocks that share their weights; of the second only one output is used.
                     const Segments segments = b.segments({3, 1});
                     auto f = [key = b.dropout(0.3f), segments](Tape& tape, const std::vector<Var>& in) {
                       return block(tape, in, key, segments);
                     };
                     std::vector<Var> in = inputs(b, 4);
                     std::vector<Var> first = recompute(b.tape, in, f);
                     in[0] = first[0];
                     return std::vector<Var>{recompute(b.tape, in, f)[0], first[1]};
                   }});
}

}  // namespace

void add_loss_cases(std::vector<OpCase>& cases) {
  add_cross_entropy(cases);
  add_ctc(cases);
  add_composites(cases);
}

}  // namespace tactus::testing_ops
