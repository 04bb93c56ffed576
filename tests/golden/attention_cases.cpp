// Attention modules: the training form with its gradients, and the incremental form row by row with its cache.
#include "layers/attention/attention.h"
#include "tests/golden/check.h"

namespace tactus::golden {
namespace {

AttentionOptions options_of(const Node& object, int64_t stride) {
  AttentionOptions o;
  o.type = object.text("kind");
  o.heads = object.integer("heads");
  o.kv_heads = object.integer("kv_heads");
  o.head_dim = object.integer("head_dim");
  o.stride = stride;
  o.q_lora_rank = object.integer("q_lora_rank");
  o.kv_lora_rank = object.integer("kv_lora_rank");
  o.qk_nope_head_dim = object.integer("qk_nope_head_dim");
  o.qk_rope_head_dim = object.integer("qk_rope_head_dim");
  o.v_head_dim = object.integer("v_head_dim");
  o.hyper_dim = object.integer("hyper_dim");
  o.rope_theta = object.real("rope_theta");
  return o;
}

/// One case: B sequences of T rows, the first P of them keys only in the training form.
struct AttentionCase {
  const Setting& setting;
  const Node& node;
  Array x, y;
  int64_t batch, rows, width;
  int64_t keys_only;  // rows without queries in training
  int64_t prompt;     // rows that the incremental form takes in one prefill
  std::string name;

  /// Rows [begin, end) of every sequence of a (batch, n, width) array, one sequence after another.
  std::vector<double> rows_of(const Array& a, int64_t begin, int64_t end) const {
    std::vector<double> out;
    for (int64_t b = 0; b < batch; ++b) {
      const std::vector<double> part = a.part(b * a.dim(1) + begin, b * a.dim(1) + end, width);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  Segments segments(int64_t length) const {
    return Segments(setting.ctx, std::vector<int64_t>(static_cast<size_t>(batch), length));
  }
};

void check_training(const AttentionCase& c, ParameterStore& store, const Attention& attention, Report& report) {
  const Context& ctx = c.setting.ctx;
  Tape tape(ctx);
  Tables tables(ctx);
  Pass pass{tape, tables};
  const int64_t own_rows = c.rows - c.keys_only;
  const Segments own_segments = c.segments(own_rows), prompt_segments = c.segments(c.keys_only);
  const Var own = tape.leaf(c.setting.upload(c.rows_of(c.x, c.keys_only, c.rows), {c.batch * own_rows, c.width}));
  Var prompt;
  if (c.keys_only > 0)
    prompt = tape.leaf(c.setting.upload(c.rows_of(c.x, 0, c.keys_only), {c.batch * c.keys_only, c.width}));
  const AttentionLayout layout = make_layout(ctx, c.keys_only > 0 ? &prompt_segments : nullptr, own_segments, true);
  const Var y = attention.train(pass, own, prompt, layout);
  report.value(c.name + "/y", ctx.download_real(y.value()), c.y.values);
  if (!c.node.has("g")) return;

  store.zero_grad();
  tape.backward({y}, {c.setting.upload(c.node.array("g"))});
  Gradients gradients(report, c.name, false);
  gradients.add_all(ours_to_official(store, OfficialContent::gradients, {}), c.node.prefixed("d."));
  if (c.node.has("dx")) {
    const Array dx = c.node.array("dx");
    gradients.add("x (own rows)", ctx.download_real(own.grad()), c.rows_of(dx, c.keys_only, c.rows));
    if (c.keys_only > 0)
      gradients.add("x (prompt rows)", ctx.download_real(prompt.grad()), c.rows_of(dx, 0, c.keys_only));
  }
  gradients.finish();
}

/// Columns [begin, begin + heads * width) of a hypothesis's slots, in the layout of the files: one axis of heads
/// outside the slots where `heads` is not 0.
std::vector<double> cache_columns(const std::vector<double>& slots, int64_t slot_width, int64_t begin, int64_t heads,
                                  int64_t width) {
  const int64_t count = static_cast<int64_t>(slots.size()) / slot_width;
  std::vector<double> out;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t s = 0; s < count; ++s) {
      const auto from = slots.begin() + s * slot_width + begin + h * width;
      out.insert(out.end(), from, from + width);
    }
  }
  return out;
}

void check_cache(const AttentionCase& c, const AttentionOptions& o, const AttentionCache& cache, Report& report) {
  const bool latent = o.type == "mla" || o.type == "mtla";
  const int64_t heads = latent ? 1 : o.type == "mqa" ? 1 : o.kv_heads, first = latent ? o.kv_lora_rank : o.head_dim;
  const int64_t second = latent ? o.qk_rope_head_dim : o.head_dim;
  for (const auto& [name, want] : c.node.prefixed("cache_final.")) {
    const bool is_second = name == "prev_k_pe" || name == "prev_value";
    std::vector<double> got;
    for (int64_t b = 0; b < c.batch; ++b) {
      const std::vector<double> part = cache_columns(cache.slots_of(b), cache.shape().width,
                                                     is_second ? heads * first : 0, heads, is_second ? second : first);
      got.insert(got.end(), part.begin(), part.end());
    }
    report.value(c.name + "/cache_final." + name, got, want.values);
  }
}

void check_incremental(const AttentionCase& c, const AttentionOptions& o, const Attention& attention, Report& report) {
  const Context& ctx = c.setting.ctx;
  Tape tape(ctx, false);
  Tables tables(ctx);
  Pass pass{tape, tables};
  const Segments prompt = c.segments(c.prompt);
  std::vector<int32_t> positions;
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t t = 0; t < c.prompt; ++t) positions.push_back(static_cast<int32_t>(t));
  }
  const auto cache = attention.new_cache(ctx, c.setting.dtype, prompt, c.batch, c.rows - c.prompt);
  const Tensor rows = c.setting.upload(c.rows_of(c.x, 0, c.prompt), {c.batch * c.prompt, c.width});
  attention.prefill(pass, tape.constant(rows), prompt, ctx.upload(positions), *cache);
  std::vector<double> got, want;
  for (int64_t t = c.prompt; t < c.rows; ++t) {
    const Var x = tape.constant(c.setting.upload(c.rows_of(c.x, t, t + 1), {c.batch, c.width}));
    const Tensor position = ctx.upload(std::vector<int32_t>(static_cast<size_t>(c.batch), static_cast<int32_t>(t)));
    const std::vector<double> y = ctx.download_real(attention.step(pass, x, position, *cache).value());
    got.insert(got.end(), y.begin(), y.end());
    const std::vector<double> expected = c.rows_of(c.y, t - c.keys_only, t + 1 - c.keys_only);
    want.insert(want.end(), expected.begin(), expected.end());
  }
  report.value(c.name + "/incremental y", got, want);
  check_cache(c, o, *cache, report);
}

}  // namespace

void check_attention(const Setting& setting, const Node& object, Report& report) {
  if (object.text("rope_layout") != "interleaved" || object.real("ln_eps") != 1e-5) {
    report.skip(object.path(), "another rotation layout or norm eps");
    return;
  }
  const OfficialTensors weights = object.weights();
  for (const Node& node : object.cases()) {
    if (node.text("case") != "attention") {
      report.skip(object.text("kind") + " case " + node.text("case"), "not supported");
      continue;
    }
    report.begin_case();
    const Node inputs = node.has_attribute("inputs") ? node.sibling(node.text("inputs")) : node;
    const Array x = (node.has("x") ? node : inputs).array("x"), y = (node.has("y") ? node : inputs).array("y");
    const bool fixed = node.text("mode") == "fixed";
    const int64_t prompt = node.text("mode") == "self" ? 0 : node.integer("prompt_len");
    const AttentionCase c{setting, node, x, y, x.dim(0), x.dim(1), x.dim(2), fixed ? prompt : 0, prompt, node.path()};
    const AttentionOptions options = options_of(object, node.integer("stride"));
    ParameterStore store;
    const auto attention = make_attention(options, Scope(store), object.integer("embed_dim"));
    store.allocate(setting.ctx, setting.dtype, true);
    official_to_ours(store, weights);
    check_training(c, store, *attention, report);
    check_incremental(c, options, *attention, report);
  }
}

}  // namespace tactus::golden
