// Forward pass on the CPU. A task is one head of one sequence: chunk-end keys are gathered once, then tiles of scores
// are matrix products and a running softmax (maximum and sum per query) joins the tiles; the query's own column comes
// last.
#include "kernels/attention/attention.h"

#include <algorithm>

#include "kernels/attention/attention_keys.h"
#include "kernels/shared/cpu_gemm.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"
#include "kernels/shared/dropout_draws.h"

namespace tactus {
namespace {

/// Running softmax of a tile of queries: maximum, sum of exponentials and unnormalised output.
template <class T>
struct RunningSoftmax {
  std::vector<T> top, sum, out;
  int64_t width;
  explicit RunningSoftmax(int64_t d_value)
      : top(kQueryTile), sum(kQueryTile), out(kQueryTile * d_value), width(d_value) {}
  void reset() {
    std::fill(top.begin(), top.end(), kMinusInfinity<T>);
    std::fill(sum.begin(), sum.end(), T(0));
    std::fill(out.begin(), out.end(), T(0));
  }
  /// Turns n scores of query r to exp(score - maximum), after scaling what was summed before to the new maximum.
  void absorb(int64_t r, T* scores, int64_t n) {
    const T new_top = std::max(top[r], row_max(scores, n));
    // Where every score is -inf the maximum is no base: -inf - (-inf) would make a NaN.
    const T base = new_top == kMinusInfinity<T> ? T(0) : new_top;
    const T correction = exp_of(top[r] - base);
    T added = 0;
#pragma omp simd reduction(+ : added)
    for (int64_t c = 0; c < n; ++c) {
      scores[c] = exp_of(scores[c] - base);
      added += scores[c];
    }
    sum[r] = sum[r] * correction + added;
    top[r] = new_top;
    T* row = out.data() + r * width;
    if (correction != T(1)) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) row[i] *= correction;
    }
  }
};

template <class T>
class ForwardTask {
 public:
  ForwardTask(const AttentionArgs<T>& args, KeyExtent extent, int64_t head, Mat<T> out, T* lse)
      : args_(args),
        shape_(args.shape),
        extent_(extent),
        head_(head),
        out_(out),
        lse_(lse),
        state_(args.shape.d_value),
        scores_(kQueryTile * kKeyTile),
        draws_(args.shape.dropout.active() ? kQueryTile * kKeyTile : 0) {}

  void run() {
    args_.gather(extent_, args_.kv_head(head_), keys_, values_);
    for (int64_t t = 0; t < extent_.own; t += kQueryTile) {
      const int64_t queries = std::min(kQueryTile, extent_.own - t);
      const int64_t columns = args_.visible(extent_, t + queries - 1);
      state_.reset();
      for (int64_t c = 0; c < columns; c += kKeyTile) key_tile(t, queries, c, std::min(kKeyTile, columns - c));
      if (shape_.causal && shape_.stride > 1) own_columns(t, queries);
      finish(t, queries);
    }
  }

 private:
  const T* query(int64_t t) const { return args_.q.row(extent_.own_begin + t) + head_ * args_.query_width(); }

  void key_tile(int64_t t, int64_t queries, int64_t column, int64_t n) {
    const int64_t width = args_.query_width();
    serial_gemm<T>(false, true, queries, n, width, static_cast<T>(shape_.scale), query(t), args_.q.ld,
                   keys_.data() + column * width, width, T(0), scores_.data(), kKeyTile);
    for (int64_t r = 0; r < queries; ++r) {
      T* row = scores_.data() + r * kKeyTile;
      const int64_t seen = std::clamp<int64_t>(args_.visible(extent_, t + r) - column, 0, n);
      if (seen > 0) state_.absorb(r, row, seen);
      std::fill(row + seen, row + n, T(0));
    }
    if (shape_.dropout.active()) drop(t, queries, column, n);
    serial_gemm<T>(false, false, queries, shape_.d_value, n, T(1), scores_.data(), kKeyTile,
                   values_.data() + column * shape_.d_value, shape_.d_value, T(1), state_.out.data(), shape_.d_value);
  }

  void drop(int64_t t, int64_t queries, int64_t column, int64_t n) {
    const int64_t groups = (n + 7) / 8;
    dropout_draws(shape_.dropout, extent_.utterance, static_cast<uint32_t>(t), queries, static_cast<uint32_t>(head_),
                  static_cast<uint32_t>(column / 8), groups, draws_.data());
    const uint32_t threshold = shape_.dropout.threshold();
    const T scale = static_cast<T>(shape_.dropout.scale());
    for (int64_t r = 0; r < queries; ++r) {
      T* row = scores_.data() + r * kKeyTile;
      const uint16_t* draws = draws_.data() + r * groups * 8;
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) row[c] = keep_if(draws[c] >= threshold, row[c] * scale);
    }
  }

  void own_columns(int64_t t, int64_t queries) {
    std::vector<T> key(args_.query_width());
    for (int64_t r = 0; r < queries; ++r) {
      if (!args_.has_own(extent_, t + r)) continue;
      const KeyPlace at{false, extent_.own_begin + t + r};
      args_.copy_key(at, args_.kv_head(head_), key.data());
      T weight = static_cast<T>(shape_.scale) * dot(query(t + r), key.data(), args_.query_width());
      state_.absorb(r, &weight, 1);
      if (shape_.dropout.active()) weight *= own_keep(t + r);
      add_scaled(weight, args_.value(at, args_.kv_head(head_)), state_.out.data() + r * shape_.d_value, shape_.d_value);
    }
  }
  T own_keep(int64_t t) const {
    const uint32_t column = static_cast<uint32_t>((extent_.prompt + t) / shape_.stride);
    const uint32_t bits = keep_bits(shape_.dropout, extent_.utterance, static_cast<uint32_t>(t),
                                    static_cast<uint32_t>(head_), column / 8);
    return (bits >> (column % 8)) & 1 ? static_cast<T>(shape_.dropout.scale()) : T(0);
  }

  void finish(int64_t t, int64_t queries) {
    for (int64_t r = 0; r < queries; ++r) {
      T* to = out_.row(extent_.own_begin + t + r) + head_ * shape_.d_value;
      T& lse = lse_[(extent_.own_begin + t + r) * shape_.heads + head_];
      if (args_.visible(extent_, t + r) == 0 && !args_.has_own(extent_, t + r)) {
        std::fill_n(to, shape_.d_value, T(0));
        lse = kMinusInfinity<T>;
        continue;
      }
      const T* from = state_.out.data() + r * shape_.d_value;
      const T inverse = T(1) / state_.sum[r];
#pragma omp simd
      for (int64_t i = 0; i < shape_.d_value; ++i) to[i] = from[i] * inverse;
      lse = state_.top[r] + std::log(state_.sum[r]);
    }
  }

  const AttentionArgs<T>& args_;
  const AttentionShape& shape_;
  KeyExtent extent_;
  int64_t head_;
  Mat<T> out_;
  T* lse_;
  RunningSoftmax<T> state_;
  std::vector<T> keys_, values_, scores_;
  std::vector<uint16_t> draws_;
};

}  // namespace

template <class D, class T>
void attention_forward(const Context& ctx, const AttentionShape& shape, KeyLayout layout, Mat<const T> q,
                       KeyRows<const T> prompt, KeyRows<const T> own, Mat<T> out, acc_t<T>* lse) {
  const AttentionArgs<T> args{shape, layout, q, prompt, own};
  args.check("attention_forward");
  check_shape("attention_forward", "out", out, layout.own.rows, shape.heads * shape.d_value);
  parallel_tasks(ctx, static_cast<int64_t>(layout.own.count) * shape.heads, args.work(), [&](int64_t task) {
    ForwardTask<T>(args, args.extent(static_cast<int32_t>(task / shape.heads)), task % shape.heads, out, lse).run();
  });
}

template void attention_forward<Cpu, double>(const Context&, const AttentionShape&, KeyLayout, Mat<const double>,
                                             KeyRows<const double>, KeyRows<const double>, Mat<double>, double*);
template void attention_forward<Cpu, float>(const Context&, const AttentionShape&, KeyLayout, Mat<const float>,
                                            KeyRows<const float>, KeyRows<const float>, Mat<float>, float*);

}  // namespace tactus
