// Losses, optimiser and schedule.
#include <cmath>

#include "autograd/losses.h"
#include "kernels/adam.h"
#include "tests/golden/check.h"
#include "train/optimiser/optimiser.h"

namespace tactus::golden {

void check_label_smoothed_ce(const Setting& s, const Node& object, Report& report) {
  const Array logits = object.array("logits");  // (sentences, rows, vocabulary)
  std::vector<int32_t> targets = object.tokens("target");
  const int64_t pad = object.integer("pad"), rows = logits.dim(1);
  for (int32_t& t : targets) t = t == pad ? -1 : t;
  for (const Node& c : object.groups()) {
    report.begin_case();
    std::vector<double> weights(targets.size(), 1.0);
    for (size_t i = 0; i < weights.size(); i += static_cast<size_t>(rows)) weights[i] = c.real("intent_weight");
    Tape tape(s.ctx);
    const Var x = tape.leaf(s.upload(logits));
    const Tensor row_weight =
        s.ctx.upload_real(weights, {static_cast<int64_t>(weights.size())}, accumulator_of(s.dtype));
    const CrossEntropy ce = cross_entropy(tape, x, s.ctx.upload(targets), c.real("label_smoothing"), row_weight);
    report.value(c.path() + "/loss", s.ctx.download_real(ce.loss.value()), c.array("loss").values);
    // Ours counts each token once; only where the file does too are the two comparable.
    if (c.real("intent_weight") == 1)
      report.value(c.path() + "/nll", s.ctx.download_real(ce.nll), c.array("nll").values);
    tape.backward(ce.loss);
    Gradients gradients(report, c.path(), false);
    gradients.add("logits", s.ctx.download_real(x.grad()), c.array("dlogits").values);
    gradients.finish();
  }
}

void check_ctc(const Setting& s, const Node& object, Report& report) {
  for (const Node& c : object.groups()) {
    report.begin_case();
    const Array logits = c.array("logits"), dlogits = c.array("dlogits"), target = c.array("target");
    const std::vector<int32_t> in_len = c.tokens("in_len"), tgt_len = c.tokens("tgt_len");
    const int64_t count = logits.dim(1), symbols = logits.dim(2);
    std::vector<double> packed, want;
    std::vector<int32_t> labels;
    std::vector<int64_t> frames, lengths;
    for (int64_t i = 0; i < count; ++i) {
      const size_t n = static_cast<size_t>(i);
      for (int64_t t = 0; t < in_len[n]; ++t) {
        const std::vector<double> row = logits.part(t * count + i, t * count + i + 1, symbols),
                                  grad = dlogits.part(t * count + i, t * count + i + 1, symbols);
        packed.insert(packed.end(), row.begin(), row.end());
        want.insert(want.end(), grad.begin(), grad.end());
      }
      for (double l : target.part(i * target.dim(1), i * target.dim(1) + tgt_len[n], 1))
        labels.push_back(static_cast<int32_t>(l));
      frames.push_back(in_len[n]);
      lengths.push_back(tgt_len[n]);
    }
    Tape tape(s.ctx);
    const Segments frame_segments(s.ctx, frames), target_segments(s.ctx, lengths);
    const Var x = tape.leaf(s.upload(packed, {frame_segments.rows(), symbols}));
    const CtcLoss loss =
        ctc_loss(tape, x, frame_segments, target_segments, s.ctx.upload(labels),
                 static_cast<int>(object.integer("ctc_blank")), object.integer("ctc_zero_infinity") != 0);
    report.value(c.path() + "/per", s.ctx.download_real(loss.per_utterance), c.array("per").values);
    report.value(c.path() + "/loss", s.ctx.download_real(loss.loss.value()), c.array("loss").values);
    tape.backward(loss.loss);
    Gradients gradients(report, c.path(), false);
    gradients.add("logits", s.ctx.download_real(x.grad()), want);
    gradients.finish();
  }
}

void check_adam(const Setting& s, const Node& object, Report& report) {
  const DType acc = accumulator_of(s.dtype);
  for (const Node& c : object.groups()) {
    report.begin_case();
    const Array start = c.array("p0"), grads = c.array("grads"), rates = c.array("lrs");
    const int64_t n = start.elements();
    const Tensor p = s.ctx.upload_real(start.values, {n}, acc), m = s.ctx.zeros({n}, acc), v = s.ctx.zeros({n}, acc);
    const Tensor working = s.ctx.zeros({n}, s.dtype);
    for (int64_t i = 0; i < rates.elements(); ++i) {
      AdamOptions o;
      o.learning_rate = rates.values[static_cast<size_t>(i)];
      o.beta1 = c.real("beta1");
      o.beta2 = c.real("beta2");
      o.eps = c.real("eps");
      o.weight_decay = c.real("weight_decay");
      o.step = i + 1;
      const Tensor g = s.ctx.upload_real(grads.part(i, i + 1, n), {n}, acc);
      dispatch(s.ctx, s.dtype, [&]<class D, class T>() {
        using A = acc_t<T>;
        adam_step<D, T>(s.ctx, n, o, nullptr, p.data<A>(), m.data<A>(), v.data<A>(), g.data<A>(), working.data<T>());
      });
      const std::string name = c.path() + "/" + std::to_string(i);
      report.accumulated(name + "/p", s.ctx.download_real(p), c.array("p").part(i, i + 1, n));
      report.accumulated(name + "/m", s.ctx.download_real(m), c.array("m").part(i, i + 1, n));
      report.accumulated(name + "/v", s.ctx.download_real(v), c.array("v").part(i, i + 1, n));
      report.value(name + "/working copy", s.ctx.download_real(working), c.array("p").part(i, i + 1, n));
    }
  }
}

void check_clip_norm(const Setting& s, const Node& object, Report& report) {
  report.begin_case();
  const std::vector<double> g0 = object.array("g0").values, g1 = object.array("g1").values;
  ParameterStore store;
  Parameter& a = store.add("g0", {static_cast<int64_t>(g0.size())}, Init::zeros());
  Parameter& b = store.add("g1", {static_cast<int64_t>(g1.size())}, Init::zeros());
  store.allocate(s.ctx, s.dtype, true);
  store.initialise(1);
  const DType acc = accumulator_of(s.dtype);
  s.ctx.copy(a.grad, s.ctx.upload_real(g0, a.shape, acc));
  s.ctx.copy(b.grad, s.ctx.upload_real(g1, b.shape, acc));
  OptimiserOptions o;
  o.clip_norm = object.real("max_norm");
  Optimiser optimiser(o, store, 1);
  const Optimiser::Result result = optimiser.step(1, 1.0);
  report.special(object.path() + "/norm", {result.norm}, object.array("norm").values, 1e-6);
  // The first moment after one step is (1 - beta1) times the clipped gradient.
  const std::vector<double> moment = s.ctx.download_real(optimiser.first_moment());
  auto clipped = [&](const Parameter& p) {
    std::vector<double> out(moment.begin() + p.offset, moment.begin() + p.offset + p.shape.elements());
    for (double& x : out) x /= 1 - o.beta1;
    return out;
  };
  report.special(object.path() + "/o0", clipped(a), object.array("o0").values, 1e-6);
  report.special(object.path() + "/o1", clipped(b), object.array("o1").values, 1e-6);
}

void check_inverse_sqrt(const Setting&, const Node& object, Report& report) {
  for (const Node& c : object.groups()) {
    report.begin_case();
    std::vector<double> got;
    OptimiserOptions options;
    options.learning_rate = c.real("lr");
    options.warmup_updates = c.integer("warmup");
    for (double n : c.array("n").values) got.push_back(scheduled_rate(options, 0, static_cast<int64_t>(n)));
    report.special(c.path(), got, c.array("lr").values, 1e-10, 1e-9);
  }
}

}  // namespace tactus::golden
