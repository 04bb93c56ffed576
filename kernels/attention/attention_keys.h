// Geometry of strided attention and gathered key tiles, shared by the CPU forward and backward passes (see
// attention.h).
#pragma once

#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/shared/check.h"

namespace tactus {

constexpr int64_t kQueryTile = 64;
constexpr int64_t kKeyTile = 64;  // a multiple of 8, so that a tile begins at a dropout group

/// Rows and columns of one sequence.
struct KeyExtent {
  int64_t prompt_begin, prompt;  ///< first prompt row and number of prompt rows
  int64_t own_begin, own;
  int64_t columns;  ///< columns at chunk ends
  uint32_t utterance;
  int64_t total() const { return prompt + own; }
};

/// Where a key row is kept.
struct KeyPlace {
  bool in_prompt;
  int64_t row;
};

/// Arguments of a pass with the index arithmetic of the header.
template <class T>
struct AttentionArgs {
  const AttentionShape& shape;
  const KeyLayout& layout;
  Mat<const T> q;
  KeyRows<const T> prompt, own;

  int64_t query_width() const { return shape.d_key + shape.d_shared; }
  int64_t kv_head(int64_t head) const { return head / (shape.heads / shape.kv_heads); }

  KeyExtent extent(int32_t i) const {
    KeyExtent e{};
    e.prompt_begin = layout.prompt.offsets ? layout.prompt.offsets[i] : 0;
    e.prompt = layout.prompt_length(i);
    e.own_begin = layout.own.offsets[i];
    e.own = layout.own_length(i);
    e.columns = shape.causal ? e.total() / shape.stride : (e.total() + shape.stride - 1) / shape.stride;
    e.utterance = static_cast<uint32_t>(layout.own.utterance[i]);
    return e;
  }
  /// Chunk-end columns that own row t sees; `has_own` says whether its own key row is one more.
  int64_t visible(const KeyExtent& e, int64_t t) const {
    return shape.causal ? (e.prompt + t + 1) / shape.stride : e.columns;
  }
  bool has_own(const KeyExtent& e, int64_t t) const { return shape.causal && (e.prompt + t + 1) % shape.stride != 0; }
  KeyPlace place(const KeyExtent& e, int64_t j) const {
    return j < e.prompt ? KeyPlace{true, e.prompt_begin + j} : KeyPlace{false, e.own_begin + j - e.prompt};
  }
  KeyPlace column_place(const KeyExtent& e, int64_t c) const {
    return place(e, std::min<int64_t>(shape.stride * (c + 1), e.total()) - 1);
  }

  /// k [query_width] = (key of the kv head | shared key) of one key row.
  void copy_key(KeyPlace at, int64_t kv, T* k) const {
    const KeyRows<const T>& rows = at.in_prompt ? prompt : own;
    std::copy_n(rows.k.row(at.row) + kv * shape.d_key, shape.d_key, k);
    if (shape.d_shared) std::copy_n(rows.shared.row(at.row), shape.d_shared, k + shape.d_key);
  }
  const T* value(KeyPlace at, int64_t kv) const {
    return (at.in_prompt ? prompt : own).v.row(at.row) + kv * shape.d_value;
  }
  /// Gathers the chunk-end columns: k [columns, query_width], v [columns, d_value].
  void gather(const KeyExtent& e, int64_t kv, std::vector<T>& k, std::vector<T>& v) const {
    k.resize(e.columns * query_width());
    v.resize(e.columns * shape.d_value);
    for (int64_t c = 0; c < e.columns; ++c) {
      const KeyPlace at = column_place(e, c);
      copy_key(at, kv, k.data() + c * query_width());
      std::copy_n(value(at, kv), shape.d_value, v.data() + c * shape.d_value);
    }
  }

  /// Multiply-adds of one pass over all heads, for the choice of threads.
  int64_t work() const {
    int64_t products = 0;
    for (int32_t i = 0; i < layout.own.count; ++i) {
      const KeyExtent e = extent(i);
      products += e.own * (e.columns + 1);
    }
    return products * shape.heads * (query_width() + shape.d_value);
  }

  void check(const char* op) const {
    check_value(shape.heads >= 1 && shape.kv_heads >= 1 && shape.heads % shape.kv_heads == 0, op, "kv_heads",
                "a divisor of heads", shape.kv_heads);
    check_value(shape.stride >= 1, op, "stride", "at least 1", shape.stride);
    const int64_t prompt_rows = layout.prompt.offsets ? layout.prompt.rows : 0;
    check_value(!layout.prompt.offsets || layout.prompt.count == layout.own.count, op, "number of prompts",
                "the number of sequences", layout.prompt.count);
    check_shape(op, "q", q, layout.own.rows, shape.heads * query_width());
    check_rows(op, "prompt", prompt, prompt_rows);
    check_rows(op, "own", own, layout.own.rows);
  }
  template <class K>
  void check_rows(const char* op, const std::string& source, const KeyRows<K>& rows, int64_t n) const {
    check_shape(op, (source + " k").c_str(), rows.k, n, shape.kv_heads * shape.d_key);
    check_shape(op, (source + " v").c_str(), rows.v, n, shape.kv_heads * shape.d_value);
    if (shape.d_shared) check_shape(op, (source + " shared key").c_str(), rows.shared, n, shape.d_shared);
  }
};

}  // namespace tactus
