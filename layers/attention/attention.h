// One interface for every attention mechanism (architecture, section 4). Mechanisms are chosen by `type:` and must obey
// the laws that tests run on each registered type: row t of train equals prefill + step at t; packed equals alone; no
// look into the future; reorder equals recomputation; payload equals cost; step asks the device for no memory and does
// not wait for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/segments.h"
#include "layers/attention/cache.h"
#include "layers/module.h"

namespace tactus {

struct AttentionOptions {
  std::string type = "mtla";
  int64_t heads = 8;
  int64_t kv_heads = 0;        // gqa: groups; 0 = heads (mha) or 1 (mqa)
  int64_t head_dim = 64;       // mha, mqa, gqa
  int64_t stride = 2;          // mtla: rows of a chunk
  int64_t q_lora_rank = 0;     // mla, mtla: width of the low-rank query, 0 = one matrix
  int64_t kv_lora_rank = 256;  // mla, mtla: latent width r
  int64_t qk_nope_head_dim = 64;
  int64_t qk_rope_head_dim = 32;
  int64_t v_head_dim = 64;
  int64_t hyper_dim = 0;  // mtla: width of the gate network, 0 = r / 4
  double rope_theta = 10000;
  double dropout = 0;  // on attention weights
  void visit(ConfigVisitor& v);
};

/// Sequences of one batch as an attention layer sees them. Own rows are keys and queries; prompt rows are keys only.
struct AttentionLayout {
  const Segments* prompt = nullptr;
  const Segments* own = nullptr;
  Tensor prompt_positions, own_positions;  ///< i32 per row: 0 .. P-1, and P + t
  int64_t longest = 0;                     ///< longest P + own length
  bool causal = true;
};
/// Positions and longest from the segments.
AttentionLayout make_layout(const Context& ctx, const Segments* prompt, const Segments& own, bool causal);

struct AttentionTraits {
  bool causal = true;        ///< can decode row by row
  bool exact = true;         ///< incremental outputs equal training outputs
  bool fixed_state = false;  ///< cache does not grow with length
};

/// Analytic cost of a sequence of some length, one layer.
struct AttentionCost {
  int64_t cache_elements = 0;  ///< numbers the cache must hold
  double macs = 0;             ///< multiply-adds of the scores and sums of one new position
};

class Attention {
 public:
  virtual ~Attention() = default;
  virtual AttentionTraits traits() const = 0;
  virtual AttentionCost cost(int64_t length) const = 0;

  /// Whole sequences, differentiable. own [own rows, width], prompt [prompt rows, width] or undefined; output [own
  /// rows, width].
  virtual Var train(Pass& pass, const Var& own, const Var& prompt, const AttentionLayout& layout) const = 0;

  /// An empty cache for `prompt.count()` hypotheses, one an utterance, growing by reorder() to at most max_rows, for
  /// max_new steps.
  virtual std::unique_ptr<AttentionCache> new_cache(const Context& ctx, DType dtype, const Segments& prompt,
                                                    int64_t max_rows, int64_t max_new) const = 0;
  /// Rows [prompt rows, width] of all utterances into the cache. positions i32 [rows]. Called once, before the first
  /// step.
  virtual void prefill(Pass& pass, const Var& rows, const Segments& segments, const Tensor& positions,
                       AttentionCache& cache) const = 0;
  /// One new position for each live hypothesis: x [hypotheses, width], positions i32 on the device; output [hypotheses,
  /// width].
  virtual Var step(Pass& pass, const Var& x, const Tensor& positions, AttentionCache& cache) const = 0;
};

/// Names accepted by `type:`.
const std::vector<std::string>& attention_types();
/// Builds the mechanism that options name. `rope` false: no rotation (encoders). Path hash and dropout come from the
/// scope.
std::unique_ptr<Attention> make_attention(const AttentionOptions& options, const Scope& scope, int64_t width,
                                          bool rope = true);

}  // namespace tactus
