// Attention in training and in decoding, and the gated sums of MTLA.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention/mtla.h"
#include "kernels/decode/attention_decode.h"
#include "train/bench/kernel_bench_cases.h"

namespace tactus {
namespace {

constexpr int kHeads = 8, kHead = 64;
constexpr DropoutKey kDropout{mix_key(3, 7), 0.1f};

/// One way of attending. d_shared > 0: the rotary key that all heads share.
struct Way {
  bool prompted = false, causal = false;
  int d_shared = 0, stride = 1;
  DropoutKey dropout = {};
};
constexpr Way kEncoder{}, kEncoderDropout{false, false, 0, 1, kDropout};
constexpr Way kDecoder{true, true, 0, 1, {}}, kDecoderLatent{true, true, 32, 2, {}};

struct Keys {
  Tensor k, shared, v;
  template <class T>
  KeyRows<T> rows() const {
    if (!k.defined()) return {};
    return {k.mat<T>(), shared.defined() ? shared.mat<T>() : Mat<T>{}, v.mat<T>()};
  }
  double bytes() const { return k.defined() ? bytes_of({k, v}) + (shared.defined() ? bytes_of({shared}) : 0) : 0; }
  void add_to(std::vector<Tensor>& list) const {
    for (const Tensor& t : {k, shared, v}) {
      if (t.defined()) list.push_back(t);
    }
  }
};

struct Attention {
  Attention(KernelData& d, const Way& way)
      : shape{kHeads, kHeads, kHead, way.d_shared, kHead, way.stride, way.causal, 0.125, way.dropout},
        prompt_segments(d.utterances()),
        own_segments(way.prompted ? d.sentences(prompt_segments) : prompt_segments),
        prompted(way.prompted) {
    const int64_t rows = own_segments.rows();
    const auto make = [&](Shape extents) { return d.normal(extents); };
    q = d.normal({rows, kHeads * (kHead + shape.d_shared)});
    own = keys(rows, make);
    if (prompted) prompt = keys(prompt_segments.rows(), make);
    out = d.output({rows, kHeads * kHead});
    lse = d.sums({rows, kHeads});
  }
  Keys keys(int64_t rows, const std::function<Tensor(Shape)>& make) const {
    Keys made{make({rows, kHeads * kHead}), {}, make({rows, kHeads * kHead})};
    if (shape.d_shared > 0) made.shared = make({rows, shape.d_shared});
    return made;
  }
  KeyLayout layout() const { return {prompted ? prompt_segments.view() : SegmentsView{}, own_segments.view()}; }
  std::function<void()> forward(const KernelData& d) const {
    return d.launcher([ctx = d.ctx(), s = *this]<class D, class T>() {
      attention_forward<D, T>(ctx, s.shape, s.layout(), s.q.mat<const T>(), s.prompt.rows<const T>(),
                              s.own.rows<const T>(), s.out.mat<T>(), s.lse.data<acc_t<T>>());
    });
  }
  /// Pairs of a query and a key column that it sees, of all heads.
  double pairs() const {
    double count = 0;
    for (int64_t i = 0; i < own_segments.count(); ++i) {
      const int64_t before = prompted ? prompt_segments.length(i) : 0, own_rows = own_segments.length(i);
      for (int64_t t = 0; t < own_rows; ++t) {
        const int64_t seen = shape.causal ? before + t + 1 : before + own_rows;
        count += static_cast<double>((seen + shape.stride - 1) / shape.stride);
      }
    }
    return count * kHeads;
  }
  std::string text() const {
    return std::to_string(own_segments.count()) + " x " + (prompted ? "155+28" : "155") + ", 8 heads of 64";
  }
  AttentionShape shape;
  Segments prompt_segments, own_segments;
  bool prompted;
  Tensor q, out, lse;
  Keys prompt, own;
};

KernelLaunch attention_forward_case(KernelData& d, const Way& way) {
  const Attention s(d, way);
  const double products = 2 * (kHead + way.d_shared + kHead);
  return {s.forward(d), {s.out, s.lse}, s.text(), 0, s.pairs() * products};
}

KernelLaunch attention_backward_case(KernelData& d, const Way& way) {
  const Context& ctx = d.ctx();
  const Attention s(d, way);
  s.forward(d)();
  const auto make = [&](Shape extents) { return d.output(extents); };
  const Tensor dout = d.normal(s.out.shape()), dq = d.output(s.q.shape());
  const Keys down = s.keys(s.own_segments.rows(), make);
  const Keys dprompt = s.prompted ? s.keys(s.prompt_segments.rows(), make) : Keys{};
  std::vector<Tensor> outputs{dq};
  down.add_to(outputs);
  dprompt.add_to(outputs);
  // Scores again, dq and dk from queries and keys; gradients of weights and dv from values.
  const double products = 2 * (3 * (kHead + way.d_shared) + 2 * kHead);
  return {d.launcher([=]<class D, class T>() {
            attention_backward<D, T>(ctx, s.shape, s.layout(), s.q.mat<const T>(), s.prompt.rows<const T>(),
                                     s.own.rows<const T>(), s.out.mat<const T>(), s.lse.data<const acc_t<T>>(),
                                     dout.mat<const T>(), dq.mat<T>(), dprompt.rows<T>(), down.rows<T>());
          }),
          outputs, s.text(), 0, s.pairs() * products};
}

/// Five hypotheses for each utterance, with 28 slots of their own. Latent: one key of 256 + 32 columns for all heads,
/// the value is its first 256.
KernelLaunch attention_decode_case(KernelData& d, bool latent) {
  constexpr int64_t kBeam = 5, kTail = 64, kTailUsed = 28;
  const Context& ctx = d.ctx();
  const DecodeShape shape =
      latent ? DecodeShape{kHeads, 1, 288, 256, 0.06} : DecodeShape{kHeads, kHeads, 64, 64, 0.125};
  const int64_t k_width = shape.kv_heads * shape.d_key, v_width = shape.kv_heads * shape.d_value;
  const Segments shared = d.utterances();
  const int64_t rows = kBeam * shared.count();
  std::vector<int32_t> owners;
  for (int64_t r = 0; r < rows; ++r) owners.push_back(static_cast<int32_t>(r / kBeam));
  const Tensor owner = d.integers(owners);
  const Tensor length = d.integers(std::vector<int32_t>(static_cast<size_t>(rows), kTailUsed));
  const Tensor q = d.normal({rows, kHeads * shape.d_key}), out = d.output({rows, kHeads * shape.d_value});
  const Tensor shared_k = d.normal({d.rows(), k_width}), tail_k = d.normal({rows * kTail, k_width});
  const Tensor shared_v = latent ? shared_k : d.normal({d.rows(), v_width});
  const Tensor tail_v = latent ? tail_k : d.normal({rows * kTail, v_width});
  const int64_t slots = d.rows() + rows * kTailUsed, slot = k_width + (latent ? 0 : v_width);
  return {d.launcher([=]<class D, class T>() {
            const DecodeCache<T> cache{shared_k.mat<const T>(),      shared_v.mat<const T>().columns(0, v_width),
                                       shared.view().offsets,        owner.data<const int32_t>(),
                                       tail_k.mat<const T>(),        tail_v.mat<const T>().columns(0, v_width),
                                       length.data<const int32_t>(), kTail};
            attention_decode<D, T>(ctx, shape, cache, q.mat<const T>(), out.mat<T>());
          }),
          {out},
          extents_text({rows}) + ", 155+28, " + (latent ? "latent 288" : "8 heads of 64"),
          static_cast<double>(slots * slot * size_of(d.dtype())) + bytes_of({q, out, owner, length})};
}

/// Gated sums at stride 2 over latents of 256 columns, the gate network a quarter as wide.
struct Gates {
  static constexpr int64_t kLatent = 256, kGate = 64;
  static constexpr int kStride = 2;
  explicit Gates(KernelData& d) : prompt_segments(d.utterances()), own_segments(d.sentences(prompt_segments)) {
    const int64_t n = prompt_segments.rows(), m = own_segments.rows();
    prompt_c = d.normal({n, kLatent}), own_c = d.normal({m, kLatent});
    prompt_p = d.normal({n, kGate}, 0.1), own_p = d.normal({m, kGate}, 0.1);
    code = d.normal({(prompt_segments.longest() + own_segments.longest() + 1) / kStride, kGate});
    prompt_sum = d.output({n, kLatent}), own_sum = d.output({m, kLatent});
    prompt_gate = d.sums({n}), own_gate = d.sums({m});
  }
  KeyLayout layout() const { return {prompt_segments.view(), own_segments.view()}; }
  template <class T>
  GateRows<T> prompt() const {
    return {prompt_c.mat<const T>(), prompt_p.mat<const T>()};
  }
  template <class T>
  GateRows<T> own() const {
    return {own_c.mat<const T>(), own_p.mat<const T>()};
  }
  std::function<void()> forward(const KernelData& d) const {
    return d.launcher([ctx = d.ctx(), s = *this]<class D, class T>() {
      using A = acc_t<T>;
      gate_sum_forward<D, T>(ctx, s.layout(), kStride, s.prompt<T>(), s.own<T>(), s.code.mat<const T>(),
                             {s.prompt_sum.mat<T>(), s.prompt_gate.data<A>()},
                             {s.own_sum.mat<T>(), s.own_gate.data<A>()});
    });
  }
  std::string text() const { return extents_text({prompt_segments.rows() + own_segments.rows(), kLatent}); }
  Segments prompt_segments, own_segments;
  Tensor prompt_c, own_c, prompt_p, own_p, code, prompt_sum, own_sum, prompt_gate, own_gate;
};

KernelLaunch gate_sum_forward_case(KernelData& d) {
  const Gates s(d);
  return {
      s.forward(d),
      {s.prompt_sum, s.own_sum, s.prompt_gate, s.own_gate},
      s.text(),
      bytes_of({s.prompt_c, s.own_c, s.prompt_p, s.own_p, s.code, s.prompt_sum, s.own_sum, s.prompt_gate, s.own_gate})};
}

KernelLaunch gate_sum_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Gates s(d);
  s.forward(d)();
  const Tensor prompt_dsum = d.normal(s.prompt_c.shape()), own_dsum = d.normal(s.own_c.shape());
  const Tensor prompt_dc = d.output(s.prompt_c.shape()), own_dc = d.output(s.own_c.shape());
  const Tensor prompt_dp = d.output(s.prompt_p.shape()), own_dp = d.output(s.own_p.shape());
  const Tensor dcode = d.output(s.code.shape());
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            gate_sum_backward<D, T>(ctx, s.layout(), Gates::kStride, s.prompt<T>(), s.own<T>(), s.code.mat<const T>(),
                                    s.prompt_gate.data<const A>(), s.own_gate.data<const A>(),
                                    prompt_dsum.mat<const T>(), own_dsum.mat<const T>(),
                                    {prompt_dc.mat<T>(), prompt_dp.mat<T>()}, {own_dc.mat<T>(), own_dp.mat<T>()},
                                    dcode.mat<T>());
          }),
          {prompt_dc, own_dc, prompt_dp, own_dp, dcode},
          s.text(),
          bytes_of({s.prompt_c, s.own_c, s.prompt_p, s.own_p, s.code, s.prompt_gate, s.own_gate, prompt_dsum, own_dsum,
                    prompt_dc, own_dc, prompt_dp, own_dp, dcode})};
}

}  // namespace

void add_attention_kernels(std::vector<KernelCase>& cases) {
  const std::vector<std::pair<std::string, Way>> ways{{"encoder", kEncoder},
                                                      {"encoder_dropout", kEncoderDropout},
                                                      {"decoder_mha", kDecoder},
                                                      {"decoder_mtla2", kDecoderLatent}};
  for (const auto& [name, way] : ways) {
    cases.push_back(
        {"attention_forward_" + name, [way = way](KernelData& d) { return attention_forward_case(d, way); }});
    cases.push_back(
        {"attention_backward_" + name, [way = way](KernelData& d) { return attention_backward_case(d, way); }});
  }
  cases.insert(cases.end(),
               {
                   {"attention_decode_mha", [](KernelData& d) { return attention_decode_case(d, false); }},
                   {"attention_decode_latent", [](KernelData& d) { return attention_decode_case(d, true); }},
                   {"gate_sum_forward", gate_sum_forward_case},
                   {"gate_sum_backward", gate_sum_backward_case},
               });
}

}  // namespace tactus
