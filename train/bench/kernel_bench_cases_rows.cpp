// Kernels on rows of the model's width: norms, dropout, activations, rotary embedding, mixed layers.
#include "kernels/dropout.h"
#include "kernels/layer_mix.h"
#include "kernels/layer_norm.h"
#include "kernels/pointwise.h"
#include "kernels/rope.h"
#include "train/bench/kernel_bench_cases.h"

namespace tactus {
namespace {

constexpr int64_t kWidth = 512, kInner = 2048, kLayers = 12;
constexpr DropoutKey kDropout{mix_key(3, 5), 0.1f};

KernelLaunch layer_norm_forward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor x = d.normal({d.rows(), kWidth}), gamma = d.normal({kWidth}), beta = d.normal({kWidth});
  const Tensor y = d.output({d.rows(), kWidth}), mean = d.sums({d.rows()}), rstd = d.sums({d.rows()});
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            layer_norm_forward<D, T>(ctx, x.mat<const T>(), gamma.data<const T>(), beta.data<const T>(), 1e-5,
                                     y.mat<T>(), mean.data<A>(), rstd.data<A>());
          }),
          {y, mean, rstd},
          extents_text({d.rows(), kWidth}),
          bytes_of({x, gamma, beta, y, mean, rstd})};
}

KernelLaunch layer_norm_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), kWidth}), x = d.normal({d.rows(), kWidth}), gamma = d.normal({kWidth});
  const Tensor mean = d.accumulator({d.rows()}), rstd = d.positive({d.rows()}), dx = d.output({d.rows(), kWidth});
  const Tensor dgamma = d.sums({kWidth}), dbeta = d.sums({kWidth});
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            layer_norm_backward<D, T>(ctx, dy.mat<const T>(), x.mat<const T>(), gamma.data<const T>(),
                                      mean.data<const A>(), rstd.data<const A>(), dx.mat<T>(), dgamma.data<A>(),
                                      dbeta.data<A>());
          }),
          {dx, dgamma, dbeta},
          extents_text({d.rows(), kWidth}),
          bytes_of({dy, x, gamma, mean, rstd, dx, dgamma, dgamma, dbeta, dbeta})};
}

KernelLaunch dropout_add_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Segments segments = d.utterances();
  const Tensor x = d.normal({d.rows(), kWidth}), residual = d.normal({d.rows(), kWidth});
  const Tensor y = d.output({d.rows(), kWidth});
  return {d.launcher([=]<class D, class T>() {
            dropout_add<D, T>(ctx, x.mat<const T>(), residual.mat<const T>(), kDropout, segments.view(), y.mat<T>());
          }),
          {y},
          extents_text({d.rows(), kWidth}),
          bytes_of({x, residual, y})};
}

KernelLaunch relu_dropout_forward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Segments segments = d.utterances();
  const Tensor x = d.normal({d.rows(), kInner}), y = d.output({d.rows(), kInner});
  return {d.launcher([=]<class D, class T>() {
            relu_dropout_forward<D, T>(ctx, x.mat<const T>(), kDropout, segments.view(), y.mat<T>());
          }),
          {y},
          extents_text({d.rows(), kInner}),
          bytes_of({x, y})};
}

KernelLaunch relu_dropout_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), kInner}), y = d.normal({d.rows(), kInner}), dx = d.output({d.rows(), kInner});
  return {d.launcher([=]<class D, class T>() {
            relu_dropout_backward<D, T>(ctx, dy.mat<const T>(), y.mat<const T>(), kDropout, dx.mat<T>());
          }),
          {dx},
          extents_text({d.rows(), kInner}),
          bytes_of({dy, y, dx})};
}

KernelLaunch relu_forward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor x = d.normal({d.rows(), kInner}), y = d.output({d.rows(), kInner});
  return {d.launcher([=]<class D, class T>() { relu_forward<D, T>(ctx, x.mat<const T>(), y.mat<T>()); }),
          {y},
          extents_text({d.rows(), kInner}),
          bytes_of({x, y})};
}

KernelLaunch relu_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), kInner}), y = d.normal({d.rows(), kInner}), dx = d.output({d.rows(), kInner});
  return {d.launcher(
              [=]<class D, class T>() { relu_backward<D, T>(ctx, dy.mat<const T>(), y.mat<const T>(), dx.mat<T>()); }),
          {dx},
          extents_text({d.rows(), kInner}),
          bytes_of({dy, y, dx})};
}

KernelLaunch glu_forward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor x = d.normal({d.rows(), 2 * kWidth}), y = d.output({d.rows(), kWidth});
  return {d.launcher([=]<class D, class T>() { glu_forward<D, T>(ctx, x.mat<const T>(), y.mat<T>()); }),
          {y},
          extents_text({d.rows(), 2 * kWidth}),
          bytes_of({x, y})};
}

KernelLaunch glu_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), kWidth}), x = d.normal({d.rows(), 2 * kWidth});
  const Tensor dx = d.output({d.rows(), 2 * kWidth});
  return {d.launcher(
              [=]<class D, class T>() { glu_backward<D, T>(ctx, dy.mat<const T>(), x.mat<const T>(), dx.mat<T>()); }),
          {dx},
          extents_text({d.rows(), 2 * kWidth}),
          bytes_of({dy, x, dx})};
}

KernelLaunch scale_add_table_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Segments segments = d.utterances();
  const Tensor x = d.normal({d.rows(), kWidth}), y = d.output({d.rows(), kWidth});
  const Tensor table = d.accumulator({segments.longest(), kWidth});
  return {d.launcher([=]<class D, class T>() {
            scale_add_table<D, T>(ctx, x.mat<const T>(), 2.0, table.data<const acc_t<T>>(), segments.view(),
                                  y.mat<T>());
          }),
          {y},
          extents_text({d.rows(), kWidth}),
          bytes_of({x, table, y})};
}

/// y = alpha x + beta y.
KernelLaunch axpby_case(KernelData& d, double alpha, double beta) {
  const Context& ctx = d.ctx();
  const Tensor x = d.normal({d.rows(), kWidth}), y = d.normal({d.rows(), kWidth});
  return {d.launcher([=]<class D, class T>() { axpby<D, T>(ctx, alpha, x.mat<const T>(), beta, y.mat<T>()); }),
          {y},
          extents_text({d.rows(), kWidth}),
          beta == 0 ? bytes_of({x, y}) : bytes_of({x, y, y})};
}

KernelLaunch rope_case(KernelData& d, bool inverse) {
  constexpr int64_t kHeads = 8, kDim = kWidth / kHeads;
  const Context& ctx = d.ctx();
  const Segments segments = d.utterances();
  std::vector<int32_t> position;
  for (int64_t n : segments.lengths()) {
    for (int64_t t = 0; t < n; ++t) position.push_back(static_cast<int32_t>(t));
  }
  const Tensor positions = d.integers(position);
  const Tensor table = rope_table(ctx, segments.longest(), kDim, 10000, d.accumulator_type());
  const Tensor x = d.normal({d.rows(), kWidth}), y = d.output({d.rows(), kWidth});
  return {d.launcher([=]<class D, class T>() {
            rope<D, T>(ctx, x.mat<const T>(), kHeads, kDim, kDim, positions.data<const int32_t>(),
                       table.data<const acc_t<T>>(), inverse, y.mat<T>());
          }),
          {y},
          extents_text({d.rows(), kHeads, kDim}),
          bytes_of({x, positions, table, y})};
}

KernelLaunch layer_mix_forward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor x = d.normal({d.rows(), kLayers * kWidth}), w = d.positive({kLayers});
  const Tensor y = d.output({d.rows(), kWidth});
  return {d.launcher([=]<class D, class T>() {
            layer_mix_forward<D, T>(ctx, x.mat<const T>(), kLayers, w.data<const acc_t<T>>(), y.mat<T>());
          }),
          {y},
          extents_text({d.rows(), kLayers, kWidth}),
          bytes_of({x, w, y})};
}

KernelLaunch layer_mix_backward_x_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), kWidth}), w = d.positive({kLayers});
  const Tensor dx = d.output({d.rows(), kLayers * kWidth});
  return {d.launcher([=]<class D, class T>() {
            layer_mix_backward_x<D, T>(ctx, dy.mat<const T>(), kLayers, w.data<const acc_t<T>>(), dx.mat<T>());
          }),
          {dx},
          extents_text({d.rows(), kLayers, kWidth}),
          bytes_of({dy, w, dx})};
}

KernelLaunch layer_mix_backward_weights_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Tensor dy = d.normal({d.rows(), kWidth}), x = d.normal({d.rows(), kLayers * kWidth});
  const Tensor w = d.positive({kLayers}), da = d.sums({kLayers});
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            layer_mix_backward_weights<D, T>(ctx, dy.mat<const T>(), x.mat<const T>(), kLayers, w.data<const A>(),
                                             da.data<A>());
          }),
          {da},
          extents_text({d.rows(), kLayers, kWidth}),
          bytes_of({dy, x, w, da, da})};
}

}  // namespace

void add_row_kernels(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(), {
                                {"layer_norm_forward", layer_norm_forward_case},
                                {"layer_norm_backward", layer_norm_backward_case},
                                {"dropout_add", dropout_add_case},
                                {"relu_dropout_forward", relu_dropout_forward_case},
                                {"relu_dropout_backward", relu_dropout_backward_case},
                                {"relu_forward", relu_forward_case},
                                {"relu_backward", relu_backward_case},
                                {"glu_forward", glu_forward_case},
                                {"glu_backward", glu_backward_case},
                                {"scale_add_table", scale_add_table_case},
                                {"axpby_copy", [](KernelData& d) { return axpby_case(d, 1, 0); }},
                                {"axpby_sum", [](KernelData& d) { return axpby_case(d, 1, 1); }},
                                {"rope_forward", [](KernelData& d) { return rope_case(d, false); }},
                                {"rope_backward", [](KernelData& d) { return rope_case(d, true); }},
                                {"layer_mix_forward", layer_mix_forward_case},
                                {"layer_mix_backward_x", layer_mix_backward_x_case},
                                {"layer_mix_backward_weights", layer_mix_backward_weights_case},
                            });
}

}  // namespace tactus
