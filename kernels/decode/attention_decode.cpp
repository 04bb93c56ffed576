#include "kernels/decode/attention_decode.h"

#include <algorithm>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {
namespace {

constexpr int64_t kSlotTile = 128;

/// Running softmax of one query head over slots; `out` holds the unnormalised sum of values.
template <class T>
struct SlotSoftmax {
  const T* query;
  int64_t d_key, d_value;
  T scale, *out;
  T top = kMinusInfinity<T>, sum = 0;

  void absorb(const Mat<const T>& k, const Mat<const T>& v, int64_t kv, int64_t begin, int64_t end) {
    T scores[kSlotTile];
    for (int64_t s = begin; s < end; s += kSlotTile) {
      const int64_t n = std::min(kSlotTile, end - s);
      for (int64_t j = 0; j < n; ++j) scores[j] = scale * dot(query, k.row(s + j) + kv * d_key, d_key);
      const T new_top = std::max(top, row_max(scores, n));
      const T base = new_top == kMinusInfinity<T> ? T(0) : new_top;
      const T correction = exp_of(top - base);
      sum *= correction;
#pragma omp simd
      for (int64_t i = 0; i < d_value; ++i) out[i] *= correction;
      for (int64_t j = 0; j < n; ++j) {
        const T weight = exp_of(scores[j] - base);
        sum += weight;
        add_scaled(weight, v.row(s + j) + kv * d_value, out, d_value);
      }
      top = new_top;
    }
  }
};

/// k best of a row, best first. A later entry must be strictly better to displace: that is the tie rule.
template <class T>
struct Best {
  T* values;
  int32_t* tokens;
  int k, count = 0;
  void offer(T value, int32_t token) {
    if (!(value > kMinusInfinity<T>) || (count == k && !(value > values[k - 1]))) return;
    int i = count < k ? count++ : k - 1;
    for (; i > 0 && value > values[i - 1]; --i) values[i] = values[i - 1], tokens[i] = tokens[i - 1];
    values[i] = value, tokens[i] = token;
  }
};

}  // namespace

template <class D, class T>
void attention_decode(const Context& ctx, const DecodeShape& shape, const DecodeCache<T>& cache, Mat<const T> q,
                      Mat<T> out) {
  const char* op = "attention_decode";
  check_value(shape.kv_heads >= 1 && shape.heads % shape.kv_heads == 0, op, "kv_heads", "a divisor of heads",
              shape.kv_heads);
  check_shape(op, "q", q, out.rows, shape.heads * shape.d_key);
  check_shape(op, "out", out, out.rows, shape.heads * shape.d_value);
  check_shape(op, "tail_k", cache.tail_k, out.rows * cache.max_tail, shape.kv_heads * shape.d_key);
  check_shape(op, "tail_v", cache.tail_v, out.rows * cache.max_tail, shape.kv_heads * shape.d_value);
  check_shape(op, "shared_k", cache.shared_k, cache.shared_k.rows, shape.kv_heads * shape.d_key);
  check_shape(op, "shared_v", cache.shared_v, cache.shared_k.rows, shape.kv_heads * shape.d_value);
  int64_t slots = 0;
  for (int64_t r = 0; r < out.rows; ++r) {
    check_value(cache.tail_length[r] >= 0 && cache.tail_length[r] <= cache.max_tail, op, "tail_length",
                "at most max_tail", cache.tail_length[r]);
    slots += cache.tail_length[r];
    if (cache.shared_offsets) {
      const int32_t u = cache.row_utterance[r];
      slots += cache.shared_offsets[u + 1] - cache.shared_offsets[u];
    }
  }
  const int64_t work = slots * shape.heads * (shape.d_key + shape.d_value);
  parallel_tasks(ctx, out.rows * shape.heads, work, [&](int64_t task) {
    const int64_t r = task / shape.heads, head = task % shape.heads, kv = head / (shape.heads / shape.kv_heads);
    T* to = out.row(r) + head * shape.d_value;
    std::fill_n(to, shape.d_value, T(0));
    SlotSoftmax<T> softmax{q.row(r) + head * shape.d_key, shape.d_key, shape.d_value, static_cast<T>(shape.scale), to};
    int64_t count = cache.tail_length[r];
    if (cache.shared_offsets) {
      const int32_t *offsets = cache.shared_offsets, u = cache.row_utterance[r];
      count += offsets[u + 1] - offsets[u];
      softmax.absorb(cache.shared_k, cache.shared_v, kv, offsets[u], offsets[u + 1]);
    }
    softmax.absorb(cache.tail_k, cache.tail_v, kv, r * cache.max_tail, r * cache.max_tail + cache.tail_length[r]);
    if (count == 0) return;
    const T inverse = T(1) / softmax.sum;
    for (int64_t i = 0; i < shape.d_value; ++i) to[i] *= inverse;
  });
}

template <class D, class T>
void tail_append(const Context& ctx, Mat<const T> x, const int32_t* tail_length, int64_t max_tail, Mat<T> tail) {
  check_shape("tail_append", "tail", tail, x.rows * max_tail, x.cols);
  check_shape("tail_append", "x", x, x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    check_value(tail_length[r] >= 0 && tail_length[r] < max_tail, "tail_append", "tail_length", "below max_tail",
                tail_length[r]);
  }
  parallel_for(ctx, x.rows, x.cols,
               [&](int64_t r) { std::copy_n(x.row(r), x.cols, tail.row(r * max_tail + tail_length[r])); });
}

template <class D, class T>
void mtla_append(const Context& ctx, int stride, Mat<const T> c, Mat<const T> p, Mat<const T> code, Mat<const T> k_rope,
                 const int32_t* positions, int32_t* tail_length, int64_t max_tail, Mat<acc_t<T>> live, Mat<T> tail) {
  const char* op = "mtla_append";
  check_value(stride >= 1, op, "stride", "at least 1", stride);
  check_shape(op, "c", c, live.rows, live.cols);
  check_shape(op, "p", p, live.rows, code.cols);
  check_shape(op, "k_rope", k_rope, live.rows, k_rope.cols);
  check_shape(op, "tail", tail, live.rows * max_tail, live.cols + k_rope.cols);
  for (int64_t r = 0; r < live.rows; ++r) {
    const bool opens = positions[r] % stride == 0;
    check_value(positions[r] >= 0 && positions[r] / stride < code.rows, op, "position", "inside the chunk code",
                positions[r]);
    check_value(opens ? tail_length[r] < max_tail : tail_length[r] > 0 && tail_length[r] <= max_tail, op, "tail_length",
                "room for a new slot, or an open slot inside a chunk", tail_length[r]);
  }
  parallel_for(ctx, live.rows, 3 * live.cols, [&](int64_t r) {
    const T gate = sigmoid(dot(code.row(positions[r] / stride), p.row(r), code.cols));
    T* sum = live.row(r);
    if (positions[r] % stride == 0) {
      std::fill_n(sum, live.cols, T(0));
      ++tail_length[r];
    }
    add_scaled(gate, c.row(r), sum, live.cols);
    T* slot = tail.row(r * max_tail + tail_length[r] - 1);
    std::copy_n(sum, live.cols, slot);
    std::copy_n(k_rope.row(r), k_rope.cols, slot + live.cols);
  });
}

template <class D>
void add_to_all(const Context&, int64_t n, int32_t delta, int32_t* x) {
  for (int64_t i = 0; i < n; ++i) x[i] += delta;
}

template <class D, class T>
void tail_reorder(const Context& ctx, Mat<const T> x, const int32_t* parent, const int32_t* tail_length, int64_t rows,
                  int64_t max_tail, Mat<T> y) {
  check_shape("tail_reorder", "y", y, rows * max_tail, x.cols);
  check_shape("tail_reorder", "x", x, x.rows, x.cols);
  for (int64_t i = 0; i < rows; ++i) {
    check_value(parent[i] >= 0 && (parent[i] + 1) * max_tail <= x.rows, "tail_reorder", "parent", "a hypothesis of x",
                parent[i]);
  }
  parallel_for(ctx, rows, max_tail * x.cols, [&](int64_t i) {
    for (int64_t s = 0; s < tail_length[parent[i]]; ++s) {
      std::copy_n(x.row(parent[i] * max_tail + s), x.cols, y.row(i * max_tail + s));
    }
  });
}

template <class D, class T>
void topk_log_softmax(const Context& ctx, Mat<const T> logits, double temperature, int k, int forbidden, int eos,
                      bool allow_eos, bool only_eos, acc_t<T>* values, int32_t* tokens) {
  check_shape("topk_log_softmax", "logits", logits, logits.rows, logits.cols);
  check_value(k >= 1, "topk_log_softmax", "k", "at least 1", k);
  check_value(!only_eos || (eos >= 0 && eos < logits.cols), "topk_log_softmax", "eos", "a column of logits", eos);
  const T scale = static_cast<T>(1 / temperature);
  const int64_t n = logits.cols;
  parallel_for(ctx, logits.rows, 16 * n, [&](int64_t r) {
    const T* x = logits.row(r);
    const T top = scale * row_max(x, n);
    const T lse = top + std::log(sum_exp(x, scale, top, n));
    Best<T> best{values + r * k, tokens + r * k, k};
    if (only_eos) {
      if (eos != forbidden) best.offer(x[eos], eos);
    } else {
      for (int32_t c = 0; c < n; ++c) {
        if (c != forbidden && (allow_eos || c != eos)) best.offer(x[c], c);
      }
    }
    for (int i = 0; i < k; ++i) {
      if (i < best.count) {
        best.values[i] = scale * best.values[i] - lse;
      } else {
        // A row with a NaN must not look like one without candidates.
        best.values[i] = std::isnan(lse) ? lse : kMinusInfinity<T>;
        best.tokens[i] = -1;
      }
    }
  });
}

template void add_to_all<Cpu>(const Context&, int64_t, int32_t, int32_t*);
#define TACTUS_INSTANTIATE(T)                                                                                        \
  template void attention_decode<Cpu, T>(const Context&, const DecodeShape&, const DecodeCache<T>&, Mat<const T>,    \
                                         Mat<T>);                                                                    \
  template void tail_append<Cpu, T>(const Context&, Mat<const T>, const int32_t*, int64_t, Mat<T>);                  \
  template void mtla_append<Cpu, T>(const Context&, int, Mat<const T>, Mat<const T>, Mat<const T>, Mat<const T>,     \
                                    const int32_t*, int32_t*, int64_t, Mat<T>, Mat<T>);                              \
  template void tail_reorder<Cpu, T>(const Context&, Mat<const T>, const int32_t*, const int32_t*, int64_t, int64_t, \
                                     Mat<T>);                                                                        \
  template void topk_log_softmax<Cpu, T>(const Context&, Mat<const T>, double, int, int, int, bool, bool, T*, int32_t*);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
