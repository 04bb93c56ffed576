#include "kernels/attention/mtla.h"

#include <cmath>
#include <vector>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {
namespace {

/// Rows of one sequence over [prompt ; own] and what is common to both passes.
template <class T>
struct GateArgs {
  const KeyLayout& layout;
  int64_t stride;
  GateRows<T> prompt, own;
  Mat<const T> code;

  int64_t length(int32_t i) const { return layout.prompt_length(i) + layout.own_length(i); }
  int64_t rows() const { return prompt_rows() + layout.own.rows; }
  int64_t prompt_rows() const { return layout.prompt.offsets ? layout.prompt.rows : 0; }
  /// f(in_prompt, row of that source) for row j of sequence i.
  template <class F>
  void at(int32_t i, int64_t j, F&& f) const {
    const int64_t prompt_length = layout.prompt_length(i);
    if (j < prompt_length) {
      f(true, layout.prompt.offsets[i] + j);
    } else {
      f(false, layout.own.offsets[i] + j - prompt_length);
    }
  }

  void check(const char* op) const {
    check_value(stride >= 1, op, "stride", "at least 1", stride);
    check_value(!layout.prompt.offsets || layout.prompt.count == layout.own.count, op, "number of prompts",
                "the number of sequences", layout.prompt.count);
    check_shape(op, "prompt c", prompt.c, prompt_rows(), own.c.cols);
    check_shape(op, "prompt p", prompt.p, prompt_rows(), code.cols);
    check_shape(op, "own c", own.c, layout.own.rows, own.c.cols);
    check_shape(op, "own p", own.p, layout.own.rows, code.cols);
    for (int32_t i = 0; i < layout.own.count; ++i) {
      check_value((length(i) + stride - 1) / stride <= code.rows, op, "length of a sequence",
                  "at most stride times the rows of code", length(i));
    }
  }
};

}  // namespace

Tensor chunk_code(const Context& ctx, int64_t chunks, int64_t width, DType dtype) {
  check_value(width >= 0 && width % 2 == 0, "chunk_code", "width", "even", width);
  std::vector<double> code(chunks * width);
  for (int64_t c = 0; c < chunks; ++c) {
    for (int64_t i = 0; i < width; i += 2) {
      const double angle =
          static_cast<double>(c) * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(width));
      code[c * width + i] = std::sin(angle);
      code[c * width + i + 1] = std::cos(angle);
    }
  }
  return ctx.upload_real(code, {chunks, width}, dtype);
}

template <class D, class T>
void gate_sum_forward(const Context& ctx, KeyLayout layout, int stride, GateRows<T> prompt, GateRows<T> own,
                      Mat<const T> code, GateSums<T> prompt_out, GateSums<T> own_out) {
  const GateArgs<T> args{layout, stride, prompt, own, code};
  args.check("gate_sum_forward");
  const int64_t width = own.c.cols;
  check_shape("gate_sum_forward", "prompt sums", prompt_out.sum, args.prompt_rows(), width);
  check_shape("gate_sum_forward", "own sums", own_out.sum, layout.own.rows, width);
  parallel_tasks(ctx, layout.own.count, args.rows() * (2 * code.cols + 3 * width), [&](int64_t i) {
    std::vector<T> sum(width);
    const int64_t length = args.length(static_cast<int32_t>(i));
    for (int64_t j = 0; j < length; ++j) {
      if (j % stride == 0) std::fill(sum.begin(), sum.end(), T(0));
      args.at(static_cast<int32_t>(i), j, [&](bool in_prompt, int64_t row) {
        const GateRows<T>& from = in_prompt ? prompt : own;
        const GateSums<T>& to = in_prompt ? prompt_out : own_out;
        const T gate = sigmoid(dot(code.row(j / stride), from.p.row(row), code.cols));
        to.gate[row] = gate;
        add_scaled(gate, from.c.row(row), sum.data(), width);
        std::copy_n(sum.data(), width, to.sum.row(row));
      });
    }
  });
}

template <class D, class T>
void gate_sum_backward(const Context& ctx, KeyLayout layout, int stride, GateRows<T> prompt, GateRows<T> own,
                       Mat<const T> code, const acc_t<T>* prompt_gate, const acc_t<T>* own_gate,
                       Mat<const T> prompt_dsum, Mat<const T> own_dsum, GateGradients<T> prompt_out,
                       GateGradients<T> own_out, Mat<T> dcode) {
  const char* op = "gate_sum_backward";
  const GateArgs<T> args{layout, stride, prompt, own, code};
  args.check(op);
  const int64_t width = own.c.cols, prompt_rows = args.prompt_rows();
  check_shape(op, "prompt dsum", prompt_dsum, prompt_rows, width);
  check_shape(op, "own dsum", own_dsum, layout.own.rows, width);
  check_shape(op, "prompt dc", prompt_out.dc, prompt_rows, width);
  check_shape(op, "own dc", own_out.dc, layout.own.rows, width);
  check_shape(op, "prompt dp", prompt_out.dp, prompt_rows, code.cols);
  check_shape(op, "own dp", own_out.dp, layout.own.rows, code.cols);
  check_shape(op, "dcode", dcode, code.rows, code.cols);
  // Gradients of the gates' logits, prompt rows first: dcode needs them of all sequences.
  const Tensor logits = ctx.empty({args.rows()}, dtype_of<T>(), MemoryTag::workspace);
  T* dlogit = logits.data<T>();
  const int64_t work = args.rows() * (2 * code.cols + 4 * width);
  parallel_tasks(ctx, layout.own.count, work, [&](int64_t i) {
    std::vector<T> sum(width);  // of dsum from the chunk's last row back to row j
    const int64_t length = args.length(static_cast<int32_t>(i));
    for (int64_t j = length - 1; j >= 0; --j) {
      if (j == length - 1 || (j + 1) % stride == 0) std::fill(sum.begin(), sum.end(), T(0));
      args.at(static_cast<int32_t>(i), j, [&](bool in_prompt, int64_t row) {
        const GateRows<T>& from = in_prompt ? prompt : own;
        const GateGradients<T>& to = in_prompt ? prompt_out : own_out;
        const T gate = (in_prompt ? prompt_gate : own_gate)[row];
        add_scaled(T(1), (in_prompt ? prompt_dsum : own_dsum).row(row), sum.data(), width);
        const T grad = dot(from.c.row(row), sum.data(), width) * gate * (T(1) - gate);
        dlogit[in_prompt ? row : prompt_rows + row] = grad;
        T *dc = to.dc.row(row), *dp = to.dp.row(row);
        const T* chunk = code.row(j / stride);
#pragma omp simd
        for (int64_t k = 0; k < width; ++k) dc[k] = gate * sum[k];
#pragma omp simd
        for (int64_t k = 0; k < code.cols; ++k) dp[k] = grad * chunk[k];
      });
    }
  });
  parallel_tasks(ctx, code.rows, args.rows() * 2 * code.cols, [&](int64_t chunk) {
    T* to = dcode.row(chunk);
    std::fill_n(to, code.cols, T(0));
    for (int32_t i = 0; i < layout.own.count; ++i) {
      const int64_t end = std::min<int64_t>((chunk + 1) * stride, args.length(i));
      for (int64_t j = chunk * stride; j < end; ++j) {
        args.at(i, j, [&](bool in_prompt, int64_t row) {
          add_scaled(dlogit[in_prompt ? row : prompt_rows + row], (in_prompt ? prompt : own).p.row(row), to, code.cols);
        });
      }
    }
  });
}

#define TACTUS_INSTANTIATE(T)                                                                                     \
  template void gate_sum_forward<Cpu, T>(const Context&, KeyLayout, int, GateRows<T>, GateRows<T>, Mat<const T>,  \
                                         GateSums<T>, GateSums<T>);                                               \
  template void gate_sum_backward<Cpu, T>(const Context&, KeyLayout, int, GateRows<T>, GateRows<T>, Mat<const T>, \
                                          const T*, const T*, Mat<const T>, Mat<const T>, GateGradients<T>,       \
                                          GateGradients<T>, Mat<T>);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
