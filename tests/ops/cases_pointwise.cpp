#include "autograd/dropout.h"
#include "autograd/pointwise.h"
#include "autograd/rope.h"
#include "kernels/rope.h"
#include "tests/ops/case.h"

namespace tactus::testing_ops {
namespace {

const std::vector<int64_t> kLengths{4, 0, 1, 3};
constexpr int64_t kRows = 8;
const std::vector<int64_t> kManyLengths{40000, 0, 30001};
constexpr int64_t kManyRows = 70001;
constexpr int64_t kWidths[] = {1, 3, 80, 257};

void add_elementwise(std::vector<OpCase>& cases) {
  for (int64_t w : kWidths) {
    const std::string suffix = "_" + std::to_string(w);
    cases.push_back({.name = "glu" + suffix,
                     .op = "glu",
                     .build = [=](Bench& b) -> std::vector<Var> {
                       return {glu(b.tape, b.input({5, 2 * w}))};
                     },
                     .saturates = true,
                     .extreme = true});
    cases.push_back({"relu" + suffix, "relu", [=](Bench& b) -> std::vector<Var> {
                       return {relu(b.tape, b.input_off_zero({5, w}))};
                     }});
    cases.push_back({"add" + suffix, "add", [=](Bench& b) -> std::vector<Var> {
                       const Var x = b.input({5, w}), y = b.input({5, w});
                       return {add(b.tape, x, y)};
                     }});
    cases.push_back({"scale" + suffix, "scale", [=](Bench& b) -> std::vector<Var> {
                       return {scale(b.tape, b.input({5, w}), -0.75)};
                     }});
    cases.push_back({"scale_add_table" + suffix, "scale_add_table", [=](Bench& b) -> std::vector<Var> {
                       const Tensor table = b.constant({6, w}, -1, 1);
                       return {scale_add_table(b.tape, b.input({kRows, w}), 1.25, table, b.segments(kLengths))};
                     }});
    cases.push_back({"gather_rows" + suffix, "gather_rows", [=](Bench& b) -> std::vector<Var> {
                       const Var x = b.input({5, w});
                       return {gather_rows(b.tape, x, {3, 0, 4}), gather_rows(b.tape, x, {4, 3, 2, 1, 0})};
                     }});
  }
  cases.push_back({"add_to_itself_and_on", "add", [](Bench& b) -> std::vector<Var> {
                     // x is used three times and its sum twice: gradients that were handed over are added to later.
                     const Var x = b.input({3, 4});
                     const Var twice = add(b.tape, x, x), y = scale(b.tape, twice, 0.5);
                     return {add(b.tape, y, twice), add(b.tape, x, y)};
                   }});
  cases.push_back({"gather_no_rows", "gather_rows", [](Bench& b) -> std::vector<Var> {
                     return {gather_rows(b.tape, b.input({3, 4}), {})};
                   }});
  cases.push_back({.name = "glu_no_rows",
                   .op = "glu",
                   .build = [](Bench& b) -> std::vector<Var> {
                     return {glu(b.tape, b.input({0, 8}))};
                   },
                   .saturates = true});
  cases.push_back({"relu_no_rows", "relu", [](Bench& b) -> std::vector<Var> {
                     return {relu(b.tape, b.input({0, 8}))};
                   }});
  cases.push_back({"scale_no_rows", "scale", [](Bench& b) -> std::vector<Var> {
                     return {scale(b.tape, b.input({0, 3}), 2)};
                   }});
  cases.push_back({.name = "pointwise_many_rows",
                   .op = "scale_add_table",
                   .build = [](Bench& b) -> std::vector<Var> {
                     const Segments segments = b.segments(kManyLengths);
                     const Tensor table = b.constant({40000, 2}, -1, 1);
                     const Var x = b.input_off_zero({kManyRows, 2});
                     std::vector<int32_t> reversed(kManyRows);
                     for (int64_t i = 0; i < kManyRows; ++i)
                       reversed[static_cast<size_t>(i)] = static_cast<int32_t>(kManyRows - 1 - i);
                     return {scale_add_table(b.tape, x, 0.5, table, segments), glu(b.tape, x), relu(b.tape, x),
                             gather_rows(b.tape, x, reversed), add(b.tape, x, scale(b.tape, x, 2))};
                   },
                   .large = true});
}

void add_dropout(std::vector<OpCase>& cases) {
  for (int64_t w : kWidths) {
    const std::string suffix = "_" + std::to_string(w);
    cases.push_back({"dropout_add" + suffix, "dropout_add", [=](Bench& b) -> std::vector<Var> {
                       const Var x = b.input({kRows, w}), residual = b.input({kRows, w});
                       return {dropout_add(b.tape, x, residual, b.dropout(0.3f), b.segments(kLengths))};
                     }});
    cases.push_back({"dropout" + suffix, "dropout_add", [=](Bench& b) -> std::vector<Var> {
                       return {dropout_add(b.tape, b.input({kRows, w}), {}, b.dropout(0.5f), b.segments(kLengths))};
                     }});
    cases.push_back(
        {"relu_dropout" + suffix, "relu_dropout", [=](Bench& b) -> std::vector<Var> {
           return {relu_dropout(b.tape, b.input_off_zero({kRows, w}), b.dropout(0.2f), b.segments(kLengths))};
         }});
  }
  cases.push_back({"residual_add", "dropout_add", [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({kRows, 5}), residual = b.input({kRows, 5});
                     return {dropout_add(b.tape, x, residual, {}, b.segments(kLengths))};
                   }});
  cases.push_back({"dropout_chain", "dropout_add", [](Bench& b) -> std::vector<Var> {
                     // The residual stream: each sum is both a branch's input and the next residual.
                     const Segments segments = b.segments(kLengths);
                     const Var x = b.input({kRows, 5});
                     const Var y = dropout_add(b.tape, x, x, b.dropout(0.25f), segments);
                     return {dropout_add(b.tape, scale(b.tape, y, 3), y, b.dropout(0.5f), segments), y};
                   }});
  cases.push_back({"relu_without_dropout", "relu_dropout", [](Bench& b) -> std::vector<Var> {
                     return {relu_dropout(b.tape, b.input_off_zero({kRows, 5}), {}, b.segments(kLengths))};
                   }});
  cases.push_back({"dropout_no_rows", "dropout_add", [](Bench& b) -> std::vector<Var> {
                     const Var x = b.input({0, 5}), residual = b.input({0, 5});
                     return {dropout_add(b.tape, x, residual, b.dropout(0.3f), b.segments({0, 0}))};
                   }});
  cases.push_back({.name = "dropout_many_rows",
                   .op = "dropout_add",
                   .build = [](Bench& b) -> std::vector<Var> {
                     const Segments segments = b.segments(kManyLengths);
                     const Var x = b.input_off_zero({kManyRows, 3}), residual = b.input({kManyRows, 3});
                     return {dropout_add(b.tape, x, residual, b.dropout(0.3f), segments),
                             relu_dropout(b.tape, x, b.dropout(0.1f), segments)};
                   },
                   .large = true});
}

void add_rope(std::vector<OpCase>& cases) {
  struct Turn {
    const char* name;
    int64_t rows, width, begin, end;  ///< window [begin, end) of `width` columns
    int heads;
    int64_t head_stride, offset, dim;
    bool large = false;
  };
  const std::vector<Turn> list = {
      {"heads", 5, 24, 0, 24, 3, 8, 0, 8},      {"part", 5, 12, 0, 12, 2, 6, 2, 4},
      {"window", 4, 17, 3, 15, 2, 6, 0, 2},     {"one_pair", 3, 2, 0, 2, 1, 2, 0, 2},
      {"no_rows", 0, 8, 0, 8, 1, 8, 0, 8},      {"shared_key", 6, 21, 17, 21, 1, 4, 0, 4},
      {"wide", 3, 256, 0, 256, 2, 128, 64, 64}, {"many_rows", 70001, 2, 0, 2, 1, 2, 0, 2, true}};
  for (const Turn& t : list) {
    cases.push_back(
        {.name = std::string("rope_") + t.name,
         .op = "rope",
         .build = [t](Bench& b) -> std::vector<Var> {
           const Tensor positions = b.upload(b.integers(t.rows, 50));
           const Tensor table = rope_table(b.ctx(), 50, t.dim, 10000, accumulator_of(b.dtype));
           const Var x = b.input({t.rows, t.width});
           return {rope(b.tape, Slice(x, t.begin, t.end), t.heads, t.head_stride, t.offset, t.dim, positions, table)};
         },
         .large = t.large});
  }
}

}  // namespace

void add_pointwise_cases(std::vector<OpCase>& cases) {
  add_elementwise(cases);
  add_dropout(cases);
  add_rope(cases);
}

}  // namespace tactus::testing_ops
