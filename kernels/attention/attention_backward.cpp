// Backward pass on the CPU. A task is one kv head of one sequence and owns that head's key and value gradients; it goes
// through the query heads of its group in order. With P the normalised weights, m the dropout multiplier and D = sum_c
// dO . O:
//   dV_c = sum P m dO,   dS = P (m dO . V_c - D) scale,   dQ = dS K,   dK = dS^T Q.
// A key row is either a chunk end or some query's own column, never both, so each gradient row is written once.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_keys.h"
#include "kernels/shared/cpu_gemm.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"
#include "kernels/shared/dropout_draws.h"

namespace tactus {
namespace {

template <class T>
struct BackwardArgs : AttentionArgs<T> {
  Mat<const T> out, dout;
  const T* lse;
  Mat<T> dq;
  KeyRows<T> dprompt, down;
  /// Shared-key gradients of each kv head, [kv_heads, prompt rows + own rows, d_shared].
  T* shared_partial;
  int64_t prompt_rows;
};

template <class T>
class BackwardTask {
 public:
  BackwardTask(const BackwardArgs<T>& args, KeyExtent extent, int64_t kv)
      : args_(args),
        shape_(args.shape),
        extent_(extent),
        kv_(kv),
        width_(args.query_width()),
        dkeys_(extent.columns * width_),
        dvalues_(extent.columns * args.shape.d_value),
        own_dkeys_(has_own_columns() ? extent.own * width_ : 0),
        own_dvalues_(has_own_columns() ? extent.own * args.shape.d_value : 0),
        weights_(kQueryTile * kKeyTile),
        products_(kQueryTile * kKeyTile),
        dquery_(kQueryTile * width_),
        delta_(kQueryTile),
        key_(width_),
        draws_(args.shape.dropout.active() ? kQueryTile * kKeyTile : 0) {}

  void run() {
    args_.gather(extent_, kv_, keys_, values_);
    const int64_t group = shape_.heads / shape_.kv_heads;
    for (int64_t head = kv_ * group; head < (kv_ + 1) * group; ++head) {
      for (int64_t t = 0; t < extent_.own; t += kQueryTile) query_tile(head, t, std::min(kQueryTile, extent_.own - t));
    }
    for (int64_t j = 0; j < extent_.total(); ++j) store_key_row(j);
  }

 private:
  bool has_own_columns() const { return shape_.causal && shape_.stride > 1; }
  const T* query(int64_t head, int64_t t) const { return args_.q.row(extent_.own_begin + t) + head * width_; }
  const T* dout(int64_t head, int64_t t) const { return args_.dout.row(extent_.own_begin + t) + head * shape_.d_value; }
  T lse(int64_t head, int64_t t) const { return args_.lse[(extent_.own_begin + t) * shape_.heads + head]; }

  void query_tile(int64_t head, int64_t t, int64_t queries) {
    for (int64_t r = 0; r < queries; ++r) {
      delta_[r] =
          dot(dout(head, t + r), args_.out.row(extent_.own_begin + t + r) + head * shape_.d_value, shape_.d_value);
    }
    std::fill(dquery_.begin(), dquery_.end(), T(0));
    const int64_t columns = args_.visible(extent_, t + queries - 1);
    for (int64_t c = 0; c < columns; c += kKeyTile) key_tile(head, t, queries, c, std::min(kKeyTile, columns - c));
    if (has_own_columns()) own_columns(head, t, queries);
    for (int64_t r = 0; r < queries; ++r) {
      std::copy_n(dquery_.data() + r * width_, width_, args_.dq.row(extent_.own_begin + t + r) + head * width_);
    }
  }

  void key_tile(int64_t head, int64_t t, int64_t queries, int64_t column, int64_t n) {
    const T* k = keys_.data() + column * width_;
    const T* v = values_.data() + column * shape_.d_value;
    const T scale = static_cast<T>(shape_.scale);
    serial_gemm<T>(false, true, queries, n, width_, scale, query(head, t), args_.q.ld, k, width_, T(0), weights_.data(),
                   kKeyTile);
    serial_gemm<T>(false, true, queries, n, shape_.d_value, T(1), dout(head, t), args_.dout.ld, v, shape_.d_value, T(0),
                   products_.data(), kKeyTile);
    const int64_t groups = (n + 7) / 8;
    if (shape_.dropout.active()) {
      dropout_draws(shape_.dropout, extent_.utterance, static_cast<uint32_t>(t), queries, static_cast<uint32_t>(head),
                    static_cast<uint32_t>(column / 8), groups, draws_.data());
    }
    for (int64_t r = 0; r < queries; ++r) {
      const int64_t seen = std::clamp<int64_t>(args_.visible(extent_, t + r) - column, 0, n);
      score_gradients(head, t + r, r, seen, shape_.dropout.active() ? draws_.data() + r * groups * 8 : nullptr);
      std::fill(weights_.begin() + r * kKeyTile + seen, weights_.begin() + r * kKeyTile + n, T(0));
      std::fill(products_.begin() + r * kKeyTile + seen, products_.begin() + r * kKeyTile + n, T(0));
    }
    serial_gemm<T>(true, false, n, shape_.d_value, queries, T(1), weights_.data(), kKeyTile, dout(head, t),
                   args_.dout.ld, T(1), dvalues_.data() + column * shape_.d_value, shape_.d_value);
    serial_gemm<T>(false, false, queries, width_, n, T(1), products_.data(), kKeyTile, k, width_, T(1), dquery_.data(),
                   width_);
    serial_gemm<T>(true, false, n, width_, queries, T(1), products_.data(), kKeyTile, query(head, t), args_.q.ld, T(1),
                   dkeys_.data() + column * width_, width_);
  }

  /// Row r of the tile: scores become dropped weights P m, products dO . V become dS.
  void score_gradients(int64_t head, int64_t t, int64_t r, int64_t n, const uint16_t* draws) {
    T *weights = weights_.data() + r * kKeyTile, *products = products_.data() + r * kKeyTile;
    const T base = lse(head, t), delta = delta_[r], scale = static_cast<T>(shape_.scale);
    if (shape_.dropout.active()) {
      const uint32_t threshold = shape_.dropout.threshold();
      const T keep = static_cast<T>(shape_.dropout.scale());
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) {
        const T p = exp_of(weights[c] - base);
        const bool kept = draws[c] >= threshold;
        weights[c] = keep_if(kept, p * keep);
        products[c] = p * (keep_if(kept, products[c] * keep) - delta) * scale;
      }
    } else {
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) {
        weights[c] = exp_of(weights[c] - base);
        products[c] = weights[c] * (products[c] - delta) * scale;
      }
    }
  }

  void own_columns(int64_t head, int64_t t, int64_t queries) {
    const T scale = static_cast<T>(shape_.scale);
    for (int64_t r = 0; r < queries; ++r) {
      if (!args_.has_own(extent_, t + r)) continue;
      const KeyPlace at{false, extent_.own_begin + t + r};
      args_.copy_key(at, kv_, key_.data());
      const T* q = query(head, t + r);
      const T p = exp_of(scale * dot(q, key_.data(), width_) - lse(head, t + r));
      const T keep = own_keep(head, t + r);
      // A dropped weight has no gradient of its own even where dO . V is not finite.
      const T product = keep == T(0) ? T(0) : keep * dot(dout(head, t + r), args_.value(at, kv_), shape_.d_value);
      const T ds = p * (product - delta_[r]) * scale;
      if (keep != T(0)) {
        add_scaled(p * keep, dout(head, t + r), own_dvalues_.data() + (t + r) * shape_.d_value, shape_.d_value);
      }
      add_scaled(ds, key_.data(), dquery_.data() + r * width_, width_);
      add_scaled(ds, q, own_dkeys_.data() + (t + r) * width_, width_);
    }
  }
  T own_keep(int64_t head, int64_t t) const {
    if (!shape_.dropout.active()) return T(1);
    const uint32_t column = static_cast<uint32_t>((extent_.prompt + t) / shape_.stride);
    const uint32_t bits =
        keep_bits(shape_.dropout, extent_.utterance, static_cast<uint32_t>(t), static_cast<uint32_t>(head), column / 8);
    return (bits >> (column % 8)) & 1 ? static_cast<T>(shape_.dropout.scale()) : T(0);
  }

  void store_key_row(int64_t j) {
    const KeyPlace at = args_.place(extent_, j);
    const bool chunk_end = (j + 1) % shape_.stride == 0 || (!shape_.causal && j + 1 == extent_.total());
    const T *dk = nullptr, *dv = nullptr;
    if (chunk_end) {
      dk = dkeys_.data() + (j / shape_.stride) * width_;
      dv = dvalues_.data() + (j / shape_.stride) * shape_.d_value;
    } else if (has_own_columns() && !at.in_prompt) {
      dk = own_dkeys_.data() + (j - extent_.prompt) * width_;
      dv = own_dvalues_.data() + (j - extent_.prompt) * shape_.d_value;
    }
    const KeyRows<T>& to = at.in_prompt ? args_.dprompt : args_.down;
    const int64_t row = at.in_prompt ? at.row : args_.prompt_rows + at.row;
    const int64_t rows = args_.prompt_rows + args_.layout.own.rows;
    store(dk, shape_.d_key, to.k.row(at.row) + kv_ * shape_.d_key);
    store(dv, shape_.d_value, to.v.row(at.row) + kv_ * shape_.d_value);
    if (shape_.d_shared) {
      store(dk ? dk + shape_.d_key : nullptr, shape_.d_shared,
            args_.shared_partial + (kv_ * rows + row) * shape_.d_shared);
    }
  }
  static void store(const T* from, int64_t n, T* to) {
    if (from) {
      std::copy_n(from, n, to);
    } else {
      std::fill_n(to, n, T(0));
    }
  }

  const BackwardArgs<T>& args_;
  const AttentionShape& shape_;
  KeyExtent extent_;
  int64_t kv_, width_;
  std::vector<T> keys_, values_, dkeys_, dvalues_, own_dkeys_, own_dvalues_;
  std::vector<T> weights_, products_, dquery_, delta_, key_;
  std::vector<uint16_t> draws_;
};

template <class T>
void sum_shared(const Context& ctx, const BackwardArgs<T>& args) {
  const int64_t d = args.shape.d_shared, rows = args.prompt_rows + args.layout.own.rows;
  parallel_for(ctx, rows, args.shape.kv_heads * d, [&](int64_t r) {
    T* to = r < args.prompt_rows ? args.dprompt.shared.row(r) : args.down.shared.row(r - args.prompt_rows);
    std::fill_n(to, d, T(0));
    for (int64_t kv = 0; kv < args.shape.kv_heads; ++kv)
      add_scaled(T(1), args.shared_partial + (kv * rows + r) * d, to, d);
  });
}

}  // namespace

template <class D, class T>
void attention_backward(const Context& ctx, const AttentionShape& shape, KeyLayout layout, Mat<const T> q,
                        KeyRows<const T> prompt, KeyRows<const T> own, Mat<const T> out, const acc_t<T>* lse,
                        Mat<const T> dout, Mat<T> dq, KeyRows<T> dprompt, KeyRows<T> down) {
  const char* op = "attention_backward";
  const int64_t prompt_rows = layout.prompt.offsets ? layout.prompt.rows : 0;
  BackwardArgs<T> args{{shape, layout, q, prompt, own}, out, dout, lse, dq, dprompt, down, nullptr, prompt_rows};
  args.check(op);
  check_shape(op, "out", out, layout.own.rows, shape.heads * shape.d_value);
  check_shape(op, "dout", dout, layout.own.rows, shape.heads * shape.d_value);
  check_shape(op, "dq", dq, layout.own.rows, shape.heads * args.query_width());
  args.check_rows(op, "gradient of prompt", dprompt, prompt_rows);
  args.check_rows(op, "gradient of own", down, layout.own.rows);
  const Tensor partial =
      ctx.empty({shape.kv_heads, prompt_rows + layout.own.rows, shape.d_shared}, dtype_of<T>(), MemoryTag::workspace);
  args.shared_partial = partial.data<T>();
  parallel_tasks(ctx, static_cast<int64_t>(layout.own.count) * shape.kv_heads, 3 * args.work(), [&](int64_t task) {
    BackwardTask<T>(args, args.extent(static_cast<int32_t>(task / shape.kv_heads)), task % shape.kv_heads).run();
  });
  if (shape.d_shared) sum_shared(ctx, args);
}

template void attention_backward<Cpu, double>(const Context&, const AttentionShape&, KeyLayout, Mat<const double>,
                                              KeyRows<const double>, KeyRows<const double>, Mat<const double>,
                                              const double*, Mat<const double>, Mat<double>, KeyRows<double>,
                                              KeyRows<double>);
template void attention_backward<Cpu, float>(const Context&, const AttentionShape&, KeyLayout, Mat<const float>,
                                             KeyRows<const float>, KeyRows<const float>, Mat<const float>, const float*,
                                             Mat<const float>, Mat<float>, KeyRows<float>, KeyRows<float>);

}  // namespace tactus
