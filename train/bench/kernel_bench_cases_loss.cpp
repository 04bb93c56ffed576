// Losses.
#include <algorithm>
#include <memory>

#include "kernels/cross_entropy.h"
#include "kernels/ctc.h"
#include "train/bench/kernel_bench_cases.h"

namespace tactus {
namespace {

constexpr int64_t kVocabulary = 8000;
constexpr double kSmoothing = 0.1;

struct CrossEntropy {
  explicit CrossEntropy(KernelData& d)
      : rows(std::max<int64_t>(1, d.rows() / 5)),
        logits(d.normal({rows, kVocabulary}, 2)),
        targets(d.integers(KernelData::draws(rows, kVocabulary))),
        loss(d.sums({rows})),
        nll(d.sums({rows})),
        lse(d.sums({rows})),
        correct(d.integers(std::vector<int32_t>(static_cast<size_t>(rows)))) {}
  std::function<void()> forward(const KernelData& d) const {
    return d.launcher([ctx = d.ctx(), s = *this]<class D, class T>() {
      using A = acc_t<T>;
      cross_entropy_forward<D, T>(ctx, s.logits.mat<const T>(), s.targets.data<const int32_t>(), kSmoothing, nullptr,
                                  s.loss.data<A>(), s.nll.data<A>(), s.lse.data<A>(), s.correct.data<int32_t>());
    });
  }
  int64_t rows;
  Tensor logits, targets, loss, nll, lse, correct;
};

KernelLaunch cross_entropy_forward_case(KernelData& d) {
  const CrossEntropy s(d);
  return {s.forward(d),
          {s.loss, s.nll, s.lse},
          extents_text({s.rows, kVocabulary}),
          bytes_of({s.logits, s.targets, s.loss, s.nll, s.lse, s.correct})};
}

KernelLaunch cross_entropy_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const CrossEntropy s(d);
  s.forward(d)();
  const Tensor grad = d.positive({1}), dlogits = d.output({s.rows, kVocabulary});
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            cross_entropy_backward<D, T>(ctx, s.logits.mat<const T>(), s.targets.data<const int32_t>(), kSmoothing,
                                         nullptr, s.lse.data<const A>(), grad.data<const A>(), dlogits.mat<T>());
          }),
          {dlogits},
          extents_text({s.rows, kVocabulary}),
          bytes_of({s.logits, s.targets, s.lse, dlogits})};
}

struct Ctc {
  explicit Ctc(KernelData& d)
      : frames(d.utterances()),
        targets(d.sentences(frames)),
        logits(d.normal({frames.rows(), kSymbols}, 2)),
        loss(d.sums({frames.count()})) {
    std::vector<int32_t> symbols = KernelData::draws(targets.rows(), kSymbols - 1);
    for (int32_t& x : symbols) ++x;  // 0 is the blank
    labels = d.integers(symbols);
  }
  std::function<void()> forward(const KernelData& d) const {
    return d.launcher([ctx = d.ctx(), s = *this]<class D, class T>() {
      ctc_forward<D, T>(ctx, s.logits.mat<const T>(), s.frames, s.targets, s.labels.data<const int32_t>(), 0, true,
                        s.loss.data<acc_t<T>>(), *s.saved);
    });
  }
  static constexpr int64_t kSymbols = 1000;
  Segments frames, targets;
  Tensor logits, loss, labels;
  std::shared_ptr<CtcSaved> saved = std::make_shared<CtcSaved>();
};

KernelLaunch ctc_forward_case(KernelData& d) {
  const Ctc s(d);
  return {s.forward(d), {s.loss}, extents_text({d.rows(), Ctc::kSymbols}), bytes_of({s.logits, s.labels, s.loss})};
}

KernelLaunch ctc_backward_case(KernelData& d) {
  const Context& ctx = d.ctx();
  const Ctc s(d);
  s.forward(d)();
  const Tensor grad = d.positive({1}), dlogits = d.output({d.rows(), Ctc::kSymbols});
  return {d.launcher([=]<class D, class T>() {
            using A = acc_t<T>;
            ctc_backward<D, T>(ctx, s.logits.mat<const T>(), s.frames, s.targets, s.labels.data<const int32_t>(), 0,
                               s.loss.data<const A>(), *s.saved, grad.data<const A>(), dlogits.mat<T>());
          }),
          {dlogits},
          extents_text({d.rows(), Ctc::kSymbols}),
          bytes_of({s.logits, s.labels, s.saved->alpha, s.saved->beta, s.saved->lse, dlogits})};
}

}  // namespace

void add_loss_kernels(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(), {
                                {"cross_entropy_forward", cross_entropy_forward_case},
                                {"cross_entropy_backward", cross_entropy_backward_case},
                                {"ctc_forward", ctc_forward_case},
                                {"ctc_backward", ctc_backward_case},
                            });
}

}  // namespace tactus
