// Multi-head latent attention (DeepSeek-V2, 2024) and its temporal compression MTLA (Deng et al., NeurIPS 2025): keys
// and values come from one normalised latent per row; MTLA also merges the gated latents of `stride` consecutive rows
// into one slot.
//
// Training expands the latents to keys and values; decoding works in absorbed form, on the latents themselves:
//   score = (q_nope W_k) . c + q_rope . k_rope,   out = W_v (sum of weights * c)
// Cache slot: (latent, rotated key of the newest row). The gate is not normalised, so MTLA with stride 1 is not MLA.
#pragma once

#include "layers/attention/attention.h"
#include "layers/blocks/basic.h"

namespace tactus {

class LatentAttention final : public Attention {
 public:
  LatentAttention(const AttentionOptions& options, const Scope& scope, int64_t width);
  AttentionTraits traits() const override { return {}; }
  AttentionCost cost(int64_t length) const override;
  Var train(Pass& pass, const Var& own, const Var& prompt, const AttentionLayout& layout) const override;
  std::unique_ptr<AttentionCache> new_cache(const Context& ctx, DType dtype, const Segments& prompt, int64_t max_rows,
                                            int64_t max_new) const override;
  void prefill(Pass& pass, const Var& rows, const Segments& segments, const Tensor& positions,
               AttentionCache& cache) const override;
  Var step(Pass& pass, const Var& x, const Tensor& positions, AttentionCache& cache) const override;

 private:
  struct Latents {
    Var c, k_rope;
  };
  struct Sums {
    Var prompt, own;
  };
  /// Queries [rows, heads (nope + rope)] with their rope columns rotated.
  Var queries(Pass& pass, const Var& x, const Tensor& positions, int64_t longest) const;
  Latents latents(Pass& pass, const Var& x, const Tensor& positions, int64_t longest) const;
  /// fc_c of the codes of chunks 0 .. of sequences up to `longest` rows.
  Var gate_code(Pass& pass, int64_t longest, DType dtype) const;
  Sums compress(Pass& pass, const Var& prompt_c, const Var& own_c, const Segments* prompt, const Segments& own,
                int64_t longest) const;
  double scale() const { return 1 / std::sqrt(static_cast<double>(nope_ + rope_)); }
  /// Columns of one query head.
  int64_t head_width() const { return nope_ + rope_; }
  template <class D, class T>
  void absorbed_step(Pass& pass, const Var& q, AttentionCache& cache, Tensor& out) const;

  int64_t heads_, latent_, nope_, rope_, value_, stride_, hyper_;
  bool gated_;  // MTLA
  double theta_, dropout_;
  uint64_t path_;
  Linear wq_, wq_a_, wq_b_, wkv_a_, wkv_b_, wo_, fc_c_,
      fc_p_;  // rows of wkv_b: keys of all heads, then values of all heads
  LayerNorm q_norm_, kv_norm_;
  bool low_rank_query_;
};

}  // namespace tactus
