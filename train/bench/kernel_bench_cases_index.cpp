// Kernels that move rows: embedding, gathering, unfolding, and the tails of decoding.
#include <algorithm>
#include <numeric>
#include <set>

#include "kernels/conv1d.h"
#include "kernels/decode/attention_decode.h"
#include "kernels/embedding.h"
#include "kernels/pointwise.h"
#include "train/bench/kernel_bench_cases.h"

namespace tactus {
namespace {

constexpr int64_t kWidth = 512, kVocabulary = 8000;
constexpr double kScale = 22.5;

KernelLaunch embedding_forward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const TokenIndex tokens = TokenIndex::make(ctx, KernelData::draws(d.rows(), kVocabulary), kVocabulary);
  const Tensor table = d.normal({kVocabulary, kWidth}), y = d.output({d.rows(), kWidth});
  const double read = static_cast<double>(tokens.unique * kWidth * size_of(d.dtype()));
  return {d.launcher([=]<class D, class T>() {
            embedding_forward<D, T>(ctx, table.mat<const T>(), tokens, kScale, y.mat<T>());
          }),
          {y},
          extents_text({d.rows(), kWidth}),
          read + bytes_of({tokens.ids, y})};
}

KernelLaunch embedding_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const TokenIndex tokens = TokenIndex::make(ctx, KernelData::draws(d.rows(), kVocabulary), kVocabulary);
  const Tensor dy = d.normal({d.rows(), kWidth}), dtable = d.sums({kVocabulary, kWidth});
  const double changed = static_cast<double>(tokens.unique * kWidth * size_of(d.accumulator_type()));
  return {d.launcher([=]<class D, class T>() {
            embedding_backward<D, T>(ctx, dy.mat<const T>(), tokens, kScale, dtable.mat<acc_t<T>>());
          }),
          {dtable},
          extents_text({d.rows(), kWidth}),
          2 * changed + bytes_of({tokens.ids, tokens.order, tokens.starts, dy})};
}

KernelLaunch gather_rows_case(KernelData& d) {
  const Context& ctx = d.ctx();
  std::vector<int32_t> order(static_cast<size_t>(d.rows()));
  std::iota(order.begin(), order.end(), 0);
  const std::vector<int32_t> keys = KernelData::draws(d.rows(), 1 << 30);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return keys[a] < keys[b]; });
  const Tensor index = d.integers(order);
  const Tensor x = d.normal({d.rows(), kWidth}), y = d.output({d.rows(), kWidth});
  return {d.launcher([=]<class D, class T>() {
            gather_rows<D, T>(ctx, x.mat<const T>(), index.data<const int32_t>(), y.mat<T>());
          }),
          {y},
          extents_text({d.rows(), kWidth}),
          bytes_of({x, index, y})};
}

constexpr int kTaps = 5, kStep = 2, kPad = 2;

/// Segments after a convolution.
Segments shortened(const Context& ctx, const Segments& in) {
  std::vector<int64_t> lengths;
  for (int64_t n : in.lengths()) lengths.push_back(conv1d_length(n, kTaps, kStep, kPad));
  return Segments(ctx, lengths);
}

KernelLaunch unfold_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Segments in = d.utterances(), out = shortened(ctx, in);
  const Tensor x = d.normal({d.rows(), kWidth}), columns = d.output({out.rows(), kTaps * kWidth});
  return {d.launcher([=]<class D, class T>() {
            unfold<D, T>(ctx, x.mat<const T>(), in.view(), out.view(), kTaps, kStep, kPad, columns.mat<T>());
          }),
          {columns},
          extents_text({out.rows(), kTaps, kWidth}),
          bytes_of({x, columns})};
}

KernelLaunch fold_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Segments in = d.utterances(), out = shortened(ctx, in);
  const Tensor columns = d.normal({out.rows(), kTaps * kWidth}), dx = d.output({d.rows(), kWidth});
  return {d.launcher([=]<class D, class T>() {
            fold<D, T>(ctx, columns.mat<const T>(), in.view(), out.view(), kTaps, kStep, kPad, dx.mat<T>());
          }),
          {dx},
          extents_text({out.rows(), kTaps, kWidth}),
          bytes_of({columns, dx})};
}

constexpr int64_t kTail = 64, kTailUsed = 28;  // slots of a hypothesis

KernelLaunch tail_append_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const int64_t rows = std::max<int64_t>(1, d.rows() / 32);
  const Tensor x = d.normal({rows, kWidth}), tail = d.output({rows * kTail, kWidth});
  const Tensor length = d.integers(std::vector<int32_t>(static_cast<size_t>(rows), kTailUsed));
  return {d.launcher([=]<class D, class T>() {
            tail_append<D, T>(ctx, x.mat<const T>(), length.data<const int32_t>(), kTail, tail.mat<T>());
          }),
          {tail},
          extents_text({rows, kWidth}),
          bytes_of({x, x, length})};
}

KernelLaunch tail_reorder_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const int64_t rows = std::max<int64_t>(1, d.rows() / 32);
  const std::vector<int32_t> parents = KernelData::draws(rows, rows);
  const std::set<int32_t> distinct(parents.begin(), parents.end());
  const Tensor parent = d.integers(parents);
  const Tensor length = d.integers(std::vector<int32_t>(static_cast<size_t>(rows), kTailUsed));
  const Tensor x = d.normal({rows * kTail, kWidth}), y = d.output({rows * kTail, kWidth});
  const auto copied = static_cast<double>((std::ssize(distinct) + rows) * kTailUsed * kWidth * size_of(d.dtype()));
  return {d.launcher([=]<class D, class T>() {
            tail_reorder<D, T>(ctx, x.mat<const T>(), parent.data<const int32_t>(), length.data<const int32_t>(), rows,
                               kTail, y.mat<T>());
          }),
          {y},
          extents_text({rows, kTailUsed, kWidth}),
          copied + bytes_of({parent, length})};
}

KernelLaunch topk_log_softmax_case(KernelData& d) {
  constexpr int kBest = 10;
  const Context& ctx = d.ctx();
  const int64_t rows = std::max<int64_t>(1, d.rows() / 32);
  const Tensor logits = d.normal({rows, kVocabulary}), values = d.sums({rows, kBest});
  const Tensor tokens = d.integers(std::vector<int32_t>(static_cast<size_t>(rows * kBest)));
  return {d.launcher([=]<class D, class T>() {
            topk_log_softmax<D, T>(ctx, logits.mat<const T>(), 1, kBest, -1, 2, true, false, values.data<acc_t<T>>(),
                                   tokens.data<int32_t>());
          }),
          {values},
          extents_text({rows, kVocabulary}),
          bytes_of({logits, values, tokens})};
}

}  // namespace

void add_index_kernels(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(), {
                                {"embedding_forward", embedding_forward_case},
                                {"embedding_backward", embedding_backward_case},
                                {"gather_rows", gather_rows_case},
                                {"unfold", unfold_case},
                                {"fold", fold_case},
                                {"tail_append", tail_append_case},
                                {"tail_reorder", tail_reorder_case},
                                {"topk_log_softmax", topk_log_softmax_case},
                            });
}

}  // namespace tactus
