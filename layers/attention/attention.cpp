#include "layers/attention/attention.h"

#include <algorithm>

#include "layers/attention/latent.h"
#include "layers/attention/mha.h"

namespace tactus {

void AttentionOptions::visit(ConfigVisitor& v) {
  v.field("type", type, {.doc = "Attention mechanism", .choices = attention_types()});
  v.field("heads", heads, {.doc = "Query heads", .min = 1, .max = 1024});
  v.field("kv_heads", kv_heads,
          {.doc = "Key and value heads of gqa (its groups); 0: all heads for mha, 1 for mqa", .min = 0, .max = 1024});
  v.field("head_dim", head_dim, {.doc = "Width of a head (mha, mqa, gqa)", .min = 2, .max = 512});
  v.field("stride", stride, {.doc = "Rows merged into one cache slot (mtla)", .unit = "rows", .min = 1, .max = 64});
  v.field("q_lora_rank", q_lora_rank, {.doc = "Width of the low-rank query (mla, mtla); 0: one full matrix", .min = 0});
  v.field("kv_lora_rank", kv_lora_rank, {.doc = "Width of the cached latent (mla, mtla)", .min = 2});
  v.field("qk_nope_head_dim", qk_nope_head_dim, {.doc = "Head width without rotation (mla, mtla)", .min = 1});
  v.field("qk_rope_head_dim", qk_rope_head_dim,
          {.doc = "Head width with rotation, one key for all heads (mla, mtla)", .min = 2});
  v.field("v_head_dim", v_head_dim, {.doc = "Width of a value head (mla, mtla)", .min = 1});
  v.field("hyper_dim", hyper_dim, {.doc = "Width of the gate network (mtla); 0: a quarter of kv_lora_rank", .min = 0});
  v.field("rope_theta", rope_theta, {.doc = "Base of the rotary frequencies", .min = 1});
  v.field("dropout", dropout, {.doc = "Dropout on attention weights", .min = 0, .max = 0.95});
}

AttentionLayout make_layout(const Context& ctx, const Segments* prompt, const Segments& own, bool causal) {
  AttentionLayout layout;
  layout.prompt = prompt;
  layout.own = &own;
  layout.causal = causal;
  std::vector<int32_t> prompt_positions, own_positions;
  for (int64_t i = 0; i < own.count(); ++i) {
    const int64_t before = prompt ? prompt->length(i) : 0;
    for (int64_t t = 0; t < before; ++t) prompt_positions.push_back(static_cast<int32_t>(t));
    for (int64_t t = 0; t < own.length(i); ++t) own_positions.push_back(static_cast<int32_t>(before + t));
    layout.longest = std::max(layout.longest, before + own.length(i));
  }
  layout.prompt_positions = ctx.upload(prompt_positions, MemoryTag::workspace);
  layout.own_positions = ctx.upload(own_positions, MemoryTag::workspace);
  return layout;
}

const std::vector<std::string>& attention_types() {
  static const std::vector<std::string> types = {"mha", "mqa", "gqa", "mla", "mtla"};
  return types;
}

std::unique_ptr<Attention> make_attention(const AttentionOptions& options, const Scope& scope, int64_t width,
                                          bool rope) {
  const std::string& type = options.type;
  if (type == "mha" || type == "mqa" || type == "gqa")
    return std::make_unique<MultiHeadAttention>(options, scope, width, rope);
  if (type == "mla" || type == "mtla") {
    if (!rope)
      throw ConfigError("attention.type: " + type + " always rotates; use mha for an encoder without rotation");
    return std::make_unique<LatentAttention>(options, scope, width);
  }
  throw ConfigError("attention.type: unknown mechanism '" + type + "'");
}

}  // namespace tactus
