// Multi-head, multi-query and grouped-query attention with rotary positions (Vaswani et al. 2017; Shazeer 2019; Ainslie
// et al. 2023; Su et al. 2021). Projections with bias; q, k and v are one matrix product. Cache: rotated keys and
// values of each kv head.
#pragma once

#include "layers/attention/attention.h"
#include "layers/blocks/basic.h"

namespace tactus {

class MultiHeadAttention final : public Attention {
 public:
  MultiHeadAttention(const AttentionOptions& options, const Scope& scope, int64_t width, bool rope);
  AttentionTraits traits() const override { return {}; }
  AttentionCost cost(int64_t length) const override;
  Var train(Pass& pass, const Var& own, const Var& prompt, const AttentionLayout& layout) const override;
  std::unique_ptr<AttentionCache> new_cache(const Context& ctx, DType dtype, const Segments& prompt, int64_t max_rows,
                                            int64_t max_new) const override;
  void prefill(Pass& pass, const Var& rows, const Segments& segments, const Tensor& positions,
               AttentionCache& cache) const override;
  Var step(Pass& pass, const Var& x, const Tensor& positions, AttentionCache& cache) const override;

 private:
  int64_t q_width() const { return heads_ * head_dim_; }
  int64_t kv_width() const { return kv_heads_ * head_dim_; }
  Slice rotated(Pass& pass, const Slice& x, int64_t heads, const Tensor& positions, int64_t longest) const;
  int64_t heads_, kv_heads_, head_dim_;
  bool rope_;
  double theta_, dropout_;
  uint64_t path_;
  Linear qkv_, out_;  // rows of qkv: queries, keys, values
};

}  // namespace tactus
