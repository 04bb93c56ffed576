// Matrix products, sums, the optimiser and conversions; the two ceilings.
#include <algorithm>

#include "kernels/adam.h"
#include "kernels/gemm.h"
#include "kernels/pointwise.h"
#include "kernels/reduce.h"
#include "train/bench/kernel_bench_cases.h"

namespace tactus {
namespace {

constexpr int64_t kWidth = 512;

double product_flops(int64_t m, int64_t n, int64_t k) {
  return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

/// y = x w^T + bias, [rows, in] to [rows, out], as a linear layer does.
KernelLaunch gemm_case(KernelData& d, int64_t rows, int64_t in, int64_t out, bool with_bias) {
  const Context& ctx = d.ctx();
  const Tensor x = d.normal({rows, in}), w = d.normal({out, in}), bias = d.normal({out}), y = d.output({rows, out});
  return {d.launcher([=]<class D, class T>() {
            GemmOptions<T> options;
            options.transpose_b = true;
            if (with_bias) options.bias = bias.data<const T>();
            gemm<D, T, T>(ctx, x.mat<const T>(), w.mat<const T>(), y.mat<T>(), options);
          }),
          {y},
          extents_text({rows, in, out}),
          0,
          product_flops(rows, out, in)};
}

/// dx = dy w.
KernelLaunch gemm_input_gradient_case(KernelData& d, int64_t in, int64_t out) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), out}), w = d.normal({out, in}), dx = d.output({d.rows(), in});
  return {d.launcher([=]<class D, class T>() { gemm<D, T, T>(ctx, dy.mat<const T>(), w.mat<const T>(), dx.mat<T>()); }),
          {dx},
          extents_text({d.rows(), out, in}),
          0,
          product_flops(d.rows(), out, in)};
}

/// dw += dy^T x, in the accumulator's type.
KernelLaunch gemm_weight_gradient_case(KernelData& d, int64_t in, int64_t out) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), out}), x = d.normal({d.rows(), in}), dw = d.sums({out, in});
  return {d.launcher([=]<class D, class T>() {
            GemmOptions<T> options;
            options.transpose_a = true;
            options.beta = 1;
            gemm<D, T, acc_t<T>>(ctx, dy.mat<const T>(), x.mat<const T>(), dw.mat<acc_t<T>>(), options);
          }),
          {dw},
          extents_text({out, d.rows(), in}),
          0,
          product_flops(out, in, d.rows())};
}

KernelLaunch column_sum_case(KernelData& d) {
  constexpr int64_t kInner = 2048;
  const Context& ctx = d.ctx();
  const Tensor x = d.normal({d.rows(), kInner}), out = d.sums({kInner});
  return {d.launcher([=]<class D, class T>() { column_sum<D, T>(ctx, x.mat<const T>(), out.data<acc_t<T>>(), true); }),
          {out},
          extents_text({d.rows(), kInner}),
          bytes_of({x, out, out})};
}

KernelLaunch reduce_sum_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const int64_t n = d.rows() * kWidth;
  const Tensor x = d.positive({n}), out = d.sums({1});
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            reduce_sum<D, A>(ctx, n, x.data<const A>(), out.data<A>());
          }),
          {out},
          extents_text({n}),
          bytes_of({x, out})};
}

KernelLaunch adam_step_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const int64_t n = d.rows() * kWidth;
  const Tensor master = d.accumulator({n}), m = d.accumulator({n}), v = d.positive({n}), grad = d.accumulator({n});
  const Tensor working = d.output({n});
  const AdamOptions options{0.01, 0.9, 0.98, 1e-8, 0.01, 3, 0.5, true};
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            adam_step<D, T>(ctx, n, options, nullptr, master.data<A>(), m.data<A>(), v.data<A>(), grad.data<A>(),
                            working.data<T>());
          }),
          {master, m, v, working},
          extents_text({n}),
          bytes_of({master, master, m, m, v, v, grad, grad, working})};
}

/// To the accumulator's type and back.
KernelLaunch widen_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const int64_t n = d.rows() * kWidth;
  const Tensor x = d.normal({n}), y = d.sums({n});
  return {d.launcher([=]<class D, class T>() { cast<D, T, acc_t<T>>(ctx, n, x.data<const T>(), y.data<acc_t<T>>()); }),
          {y},
          extents_text({n}),
          bytes_of({x, y})};
}

KernelLaunch narrow_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const int64_t n = d.rows() * kWidth;
  const Tensor x = d.accumulator({n}), y = d.output({n});
  return {d.launcher([=]<class D, class T>() { cast<D, acc_t<T>, T>(ctx, n, x.data<const acc_t<T>>(), y.data<T>()); }),
          {y},
          extents_text({n}),
          bytes_of({x, y})};
}

}  // namespace

KernelLaunch copy_ceiling(KernelData& d) {
  const Context& ctx = d.ctx();
  constexpr int64_t kRow = 1 << 16;
  const int64_t rows = std::max<int64_t>(1, d.copied() / kRow);
  const Tensor x = d.normal({rows, kRow}), y = d.output({rows, kRow});
  const bool cpu = ctx.device() == Device::cpu;  // where a plain copy keeps one core busy alone
  return {d.launcher([=]<class D, class T>() {
            if (cpu) {
              axpby<D, T>(ctx, 1, x.mat<const T>(), 0, y.mat<T>());
            } else {
              ctx.copy(y, x);
            }
          }),
          {y},
          std::to_string(x.bytes() >> 20) + " MiB",
          bytes_of({x, y})};
}

KernelLaunch gemm_ceiling(KernelData& d) { return gemm_case(d, d.square(), d.square(), d.square(), false); }

void add_dense_kernels(std::vector<KernelCase>& cases) {
  for (int64_t out : {1536, 2048}) {
    const std::string to = "_" + std::to_string(out);
    cases.push_back({"gemm" + to, [out](KernelData& d) { return gemm_case(d, d.rows(), kWidth, out, true); }});
    cases.push_back(
        {"gemm_input_gradient" + to, [out](KernelData& d) { return gemm_input_gradient_case(d, kWidth, out); }});
    cases.push_back(
        {"gemm_weight_gradient" + to, [out](KernelData& d) { return gemm_weight_gradient_case(d, kWidth, out); }});
  }
  cases.insert(cases.end(), {
                                {"column_sum", column_sum_case},
                                {"reduce_sum", reduce_sum_case},
                                {"adam_step", adam_step_case},
                                {"cast_to_accumulator", widen_case},
                                {"cast_from_accumulator", narrow_case},
                            });
}

}  // namespace tactus
