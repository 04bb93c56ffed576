// Parts of layers: chunk codes, the gate network, masks, rotation, encoder positions, the convolutional front end.
#include <algorithm>

#include "autograd/linear.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/mtla.h"
#include "kernels/rope.h"
#include "layers/blocks/subsampler.h"
#include "tests/golden/check.h"

namespace tactus::golden {
namespace {

/// Gates and running sums of packed sequences without a prompt.
struct Gated {
  std::vector<double> gates, sums;
};
Gated gate_rows(const Setting& s, const Segments& segments, int stride, const Tensor& c, const Tensor& p,
                const Tensor& code) {
  const Tensor sums = s.ctx.empty(c.shape(), c.dtype());
  const Tensor gates = s.ctx.empty({c.rows()}, accumulator_of(c.dtype()));
  dispatch(s.ctx, s.dtype, [&]<class D, class T>() {
    gate_sum_forward<D, T>(s.ctx, KeyLayout{{}, segments.view()}, stride, {}, {c.mat<const T>(), p.mat<const T>()},
                           code.mat<const T>(), {}, {sums.mat<T>(), gates.data<acc_t<T>>()});
  });
  return {s.ctx.download_real(gates), s.ctx.download_real(sums)};
}

/// Which columns the attention kernel lets each row of one causal sequence see: with all scores equal and unit vectors
/// as values, a row's output is positive exactly there.
std::vector<double> visible_columns(const Setting& s, int64_t rows, int stride) {
  constexpr int64_t kKey = 8;
  const int64_t values = (rows + 7) / 8 * 8;
  const Segments segments(s.ctx, {rows});
  std::vector<double> unit(static_cast<size_t>(rows * values), 0.0);
  for (int64_t r = 0; r < rows; ++r) unit[static_cast<size_t>(r * values + r)] = 1;
  const Tensor q = s.ctx.zeros({rows, kKey}, s.dtype), v = s.upload(unit, {rows, values});
  const Tensor out = s.ctx.empty({rows, values}, s.dtype), lse = s.ctx.empty({rows}, accumulator_of(s.dtype));
  AttentionShape shape;
  shape.d_key = kKey;
  shape.d_value = static_cast<int>(values);
  shape.stride = stride;
  dispatch(s.ctx, s.dtype, [&]<class D, class T>() {
    attention_forward<D, T>(s.ctx, shape, KeyLayout{{}, segments.view()}, q.mat<const T>(), {},
                            {q.mat<const T>(), {}, v.mat<const T>()}, out.mat<T>(), lse.data<acc_t<T>>());
  });
  const std::vector<double> weights = s.ctx.download_real(out);
  std::vector<double> seen;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < rows; ++c) seen.push_back(weights[static_cast<size_t>(r * values + c)] > 0);
  }
  return seen;
}

/// Which rows enter the running sum of each row: unit vectors under equal gates.
std::vector<double> summed_rows(const Setting& s, int64_t rows, int stride) {
  const Segments segments(s.ctx, {rows});
  std::vector<double> unit(static_cast<size_t>(rows * rows), 0.0);
  for (int64_t r = 0; r < rows; ++r) unit[static_cast<size_t>(r * rows + r)] = 1;
  const Tensor p = s.ctx.zeros({rows, 1}, s.dtype), code = s.ctx.zeros({(rows + stride - 1) / stride, 1}, s.dtype);
  std::vector<double> sums = gate_rows(s, segments, stride, s.upload(unit, {rows, rows}), p, code).sums;
  for (double& x : sums) x = x > 0;
  return sums;
}

}  // namespace

void check_chunk_code(const Setting& s, const Node& object, Report& report) {
  for (const std::string& name : object.arrays()) {
    report.begin_case();
    const Array want = object.array(name);
    report.value(object.path() + "/" + name, s.ctx.download_real(chunk_code(s.ctx, want.dim(0), want.dim(1), s.dtype)),
                 want.values);
  }
}

void check_hyper_network(const Setting& s, const Node& object, Report& report) {
  Tape tape(s.ctx, false);
  auto weight = [&](const std::string& name) { return tape.constant(s.upload(object.array("w." + name + ".weight"))); };
  auto bias = [&](const std::string& name) {
    const Array b = object.array("w." + name + ".bias");
    return tape.constant(s.upload(b.values, {b.elements()}));
  };
  for (const Node& c : object.cases()) {
    report.begin_case();
    const Array latents = c.array("c");
    const int64_t batch = latents.dim(0), rows = latents.dim(1), stride = c.integer("stride");
    const int64_t chunks = (rows + stride - 1) / stride;
    const Var code =
        linear(tape, tape.constant(chunk_code(s.ctx, chunks, latents.dim(2), s.dtype)), weight("fc_c"), bias("fc_c"));
    const Tensor rows_c = s.upload(latents);
    const Var p = linear(tape, tape.constant(rows_c), weight("fc_p"), bias("fc_p"));
    const Segments segments(s.ctx, std::vector<int64_t>(static_cast<size_t>(batch), rows));
    const std::vector<double> gates =
        gate_rows(s, segments, static_cast<int>(stride), rows_c, p.value(), code.value()).gates;
    report.value(c.path() + "/w_eff", gates, c.array("w_eff").values);
    // Of the full matrices only entries whose row belongs to the column's chunk enter a running sum.
    for (const char* name : {"W_train", "W_prefill"}) {
      const Array full = c.array(name);
      std::vector<double> got = full.values;
      const int64_t height = full.dim(1), per_row = height == rows ? 1 : stride;
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t i = 0; i < height; ++i) {
          for (int64_t j = 0; j < rows; ++j) {
            if (i * per_row / stride == j / stride)
              got[static_cast<size_t>((b * height + i) * rows + j)] = gates[static_cast<size_t>(b * rows + j)];
          }
        }
      }
      report.value(c.path() + "/" + name, got, full.values);
    }
  }
}

void check_masks(const Setting& s, const Node& object, Report& report) {
  for (const std::string& name : object.arrays()) {
    report.begin_case();
    const Array want = object.array(name);
    const Node node = object.child(name);
    const int stride = static_cast<int>(node.integer("stride"));
    const bool visible = name.rfind("stride_visible", 0) == 0;
    report.special(node.path(), visible ? visible_columns(s, want.dim(0), stride) : summed_rows(s, want.dim(0), stride),
                   want.values, 0);
  }
}

void check_rope(const Setting& s, const Node& object, Report& report) {
  for (const std::string& name : object.arrays()) {
    if (name.rfind("in_", 0) != 0) continue;
    report.begin_case();
    const Array in = object.array(name);  // (batch, rows, heads, dim)
    const int64_t rows = in.dim(0) * in.dim(1), heads = in.dim(2), dim = in.dim(3);
    std::vector<int32_t> positions;
    for (int64_t r = 0; r < rows; ++r)
      positions.push_back(static_cast<int32_t>(r % in.dim(1) + object.integer("first_position")));
    const Tensor x = s.upload(in.values, {rows, heads * dim}), y = s.ctx.empty(x.shape(), s.dtype);
    const Tensor at = s.ctx.upload(positions);
    const Tensor table = rope_table(s.ctx, *std::max_element(positions.begin(), positions.end()) + 1, dim,
                                    object.real("rope_theta"), accumulator_of(s.dtype));
    dispatch(s.ctx, s.dtype, [&]<class D, class T>() {
      rope<D, T>(s.ctx, x.mat<const T>(), static_cast<int>(heads), dim, dim, at.data<const int32_t>(),
                 table.data<const acc_t<T>>(), false, y.mat<T>());
    });
    report.value(object.path() + "/out", s.ctx.download_real(y), object.array("out").values);
  }
}

void check_sinusoid(const Setting& s, const Node& object, Report& report) {
  Tables tables(s.ctx);
  for (const std::string& name : object.arrays()) {
    report.begin_case();
    const Array want = object.array(name);
    const Tensor& table = tables.sinusoid(want.dim(0), want.dim(1), 0, accumulator_of(s.dtype));
    const std::vector<double> got = s.ctx.download_real(table.slice(0, want.dim(0)));
    if (name.find("_f64") != std::string::npos) {
      report.accumulated(object.path() + "/" + name, got, want.values);
    } else {
      report.special(object.path() + "/" + name, got, want.values, 2e-6);
    }
  }
}

void check_conv_subsampler(const Setting& s, const Node& object, Report& report) {
  const std::vector<int64_t> kernels = object.integers("conv_kernels");
  const int64_t features = object.integer("feat_dim"), width = object.integer("embed_dim");
  ParameterStore store;
  const ConvSubsampler subsampler(Scope(store), features, object.integer("conv_channels"), width, kernels,
                                  object.integer("conv_stride"));
  store.allocate(s.ctx, s.dtype, true);
  official_to_ours(store, object.weights());

  std::vector<Node> alone;
  for (const Node& c : object.cases()) {
    if (c.text("case") == "conv") alone.push_back(c);
  }
  auto run = [&](const std::vector<Node>& nodes, const std::string& name, const std::map<std::string, Array>& want) {
    report.begin_case();
    std::vector<double> x, y, g, dx;
    std::vector<int64_t> lengths;
    auto append = [](std::vector<double>& to, const Array& a) {
      to.insert(to.end(), a.values.begin(), a.values.end());
    };
    for (const Node& c : nodes) {
      append(x, c.array("x")), append(y, c.array("y")), append(g, c.array("g")), append(dx, c.array("dx"));
      lengths.push_back(c.array("x").dim(0));
    }
    Tape tape(s.ctx);
    Tables tables(s.ctx);
    Pass pass{tape, tables};
    const Segments segments(s.ctx, lengths);
    const Var in = tape.leaf(s.upload(x, {segments.rows(), features}));
    const ConvSubsampler::Output out = subsampler(pass, in, segments);
    report.value(name + "/y", s.ctx.download_real(out.rows.value()), y);
    store.zero_grad();
    tape.backward({out.rows}, {s.upload(g, {out.segments.rows(), width})});
    Gradients gradients(report, name, false);
    gradients.add_all(ours_to_official(store, OfficialContent::gradients, kernels), want);
    gradients.add("x", s.ctx.download_real(in.grad()), dx);
    gradients.finish();
  };
  for (const Node& c : alone) run({c}, c.path(), c.prefixed("d."));
  for (const Node& c : object.cases()) {
    if (c.text("case") == "sum") run(alone, c.path(), c.prefixed("d."));
  }
  for (const std::string& name : object.arrays()) {
    if (name.rfind("outlen_for", 0) != 0) continue;
    const Array want = object.array(name);
    for (int64_t n = 1; n < want.dim(0); ++n) {
      report.truth(object.path() + ": another length for " + std::to_string(n) + " frames",
                   subsampler.out_length(n) == static_cast<int64_t>(want.values[static_cast<size_t>(n)]));
    }
  }
}

}  // namespace tactus::golden
