// Forward and backward variables over the labels with blanks between them (Graves et al. 2006, section 4.1), in the log
// domain. alpha includes the emission of its own frame and beta does not, so log(posterior) = alpha + beta - log Z.
#include "kernels/ctc.h"

#include <vector>

#include "kernels/shared/check.h"
#include "kernels/shared/cpu_math.h"
#include "kernels/shared/cpu_parallel.h"

namespace tactus {
namespace {

/// Labels of one utterance with a blank before, between and after them; state 2i + 1 is label i.
template <class T>
struct States {
  std::vector<int32_t> symbol;
  /// 0 where state s may follow state s - 2 directly (a label unlike the label before), else -inf; two more at the end.
  std::vector<T> skip;

  States(const int32_t* labels, int64_t n, int blank) : symbol(2 * n + 1, blank), skip(2 * n + 3, kMinusInfinity<T>) {
    for (int64_t i = 0; i < n; ++i) {
      symbol[2 * i + 1] = labels[i];
      if (i > 0 && labels[i] != labels[i - 1]) skip[2 * i + 1] = 0;
    }
  }
  int64_t count() const { return static_cast<int64_t>(symbol.size()); }
};

/// out[s] = log(exp a[s] + exp b[s] + exp(c[s] + skip[s])). Exponentials first, in one vector loop; exp(-inf) = 0 makes
/// states that nothing reaches exactly -inf.
template <class T>
void log_sum3(int64_t n, const T* a, const T* b, const T* c, const T* skip, T* out, T* scratch) {
#pragma omp simd
  for (int64_t s = 0; s < n; ++s) {
    const T third = c[s] + skip[s];
    T top = a[s] > b[s] ? a[s] : b[s];
    top = third > top ? third : top;
    // All -inf: subtracting the maximum would make a NaN.
    const T base = top == kMinusInfinity<T> ? T(0) : top;
    scratch[s] = base;
    out[s] = exp_of(a[s] - base) + exp_of(b[s] - base) + exp_of(third - base);
  }
  for (int64_t s = 0; s < n; ++s) out[s] = scratch[s] + std::log(out[s]);
}

template <class T>
void alpha_recursion(const Mat<const T>& x, const T* lse, const States<T>& states, T* alpha) {
  const int64_t n = states.count();
  std::vector<T> before(n + 2, kMinusInfinity<T>), scratch(n);  // the frame before, after two states that do not exist
  for (int64_t s = 0; s < n; ++s) alpha[s] = s < 2 ? x(0, states.symbol[s]) - lse[0] : kMinusInfinity<T>;
  for (int64_t t = 1; t < x.rows; ++t) {
    std::copy_n(alpha + (t - 1) * n, n, before.data() + 2);
    T* now = alpha + t * n;
    log_sum3(n, before.data() + 2, before.data() + 1, before.data(), states.skip.data(), now, scratch.data());
    for (int64_t s = 0; s < n; ++s) now[s] += x(t, states.symbol[s]) - lse[t];
  }
}

template <class T>
void beta_recursion(const Mat<const T>& x, const T* lse, const States<T>& states, T* beta) {
  const int64_t n = states.count(), frames = x.rows;
  std::vector<T> next(n + 2, kMinusInfinity<T>), scratch(n);  // beta of the next frame times its emission
  for (int64_t s = 0; s < n; ++s) beta[(frames - 1) * n + s] = s + 2 >= n ? T(0) : kMinusInfinity<T>;
  for (int64_t t = frames - 2; t >= 0; --t) {
    for (int64_t s = 0; s < n; ++s) next[s] = beta[(t + 1) * n + s] + (x(t + 1, states.symbol[s]) - lse[t + 1]);
    log_sum3(n, next.data(), next.data() + 1, next.data() + 2, states.skip.data() + 2, beta + t * n, scratch.data());
  }
}

/// log Z from the last frame's alpha: an alignment ends in the last label or the blank after it.
template <class T>
T log_total(const T* last, int64_t states) {
  const T a = last[states - 1], b = states > 1 ? last[states - 2] : kMinusInfinity<T>, none = kMinusInfinity<T>;
  T total, scratch;
  log_sum3(1, &a, &b, &none, &none, &total, &scratch);
  return total;
}

void check_arguments(const char* op, const Segments& frames, const Segments& targets, const int32_t* labels, int blank,
                     int64_t vocabulary) {
  check_value(frames.count() == targets.count(), op, "number of label sequences", "the number of utterances",
              targets.count());
  check_value(frames.rows() == 0 || (blank >= 0 && blank < vocabulary), op, "blank", "a column of logits", blank);
  for (int64_t i = 0; i < targets.rows(); ++i) {
    check_value(labels[i] >= 0 && (labels[i] < vocabulary || frames.rows() == 0) && labels[i] != blank, op, "label",
                "a column of logits other than the blank", labels[i]);
  }
}

}  // namespace

template <class D, class T>
void ctc_forward(const Context& ctx, Mat<const T> logits, const Segments& frames, const Segments& targets,
                 const int32_t* labels, int blank, bool zero_infinity, acc_t<T>* loss, CtcSaved& saved) {
  check_shape("ctc_forward", "logits", logits, frames.rows(), logits.cols);
  check_arguments("ctc_forward", frames, targets, labels, blank, logits.cols);
  std::vector<int64_t> offsets(frames.count());
  int64_t cells = 0;
  for (int64_t i = 0; i < frames.count(); ++i) {
    offsets[i] = cells;
    cells += frames.length(i) * (2 * targets.length(i) + 1);
  }
  saved.alpha = ctx.empty({cells}, dtype_of<T>());
  saved.beta = ctx.empty({cells}, dtype_of<T>());
  saved.lse = ctx.empty({frames.rows()}, dtype_of<T>());
  saved.offsets = ctx.upload(offsets);
  T* lse = saved.lse.template data<T>();
  parallel_for(ctx, frames.rows(), 16 * logits.cols,
               [&](int64_t r) { lse[r] = log_sum_exp(logits.row(r), logits.cols); });
  parallel_tasks(ctx, frames.count(), 64 * cells, [&](int64_t i) {
    const States<T> states(labels + targets.begin(i), targets.length(i), blank);
    // Too few frames for the labels and the blanks between equal ones leave log Z at exactly -inf.
    T total = kMinusInfinity<T>;
    if (frames.length(i) > 0) {
      const Mat<const T> x = logits.slice(frames.begin(i), frames.begin(i) + frames.length(i));
      T* alpha = saved.alpha.template data<T>() + offsets[i];
      alpha_recursion(x, lse + frames.begin(i), states, alpha);
      beta_recursion(x, lse + frames.begin(i), states, saved.beta.template data<T>() + offsets[i]);
      total = log_total(alpha + (x.rows - 1) * states.count(), states.count());
    }
    loss[i] = total == kMinusInfinity<T> && zero_infinity ? T(0) : -total;
  });
}

template <class D, class T>
void ctc_backward(const Context& ctx, Mat<const T> logits, const Segments& frames, const Segments& targets,
                  const int32_t* labels, int blank, const acc_t<T>*, const CtcSaved& saved, const acc_t<T>* grad,
                  Mat<T> dlogits) {
  const char* op = "ctc_backward";
  check_shape(op, "logits", logits, frames.rows(), logits.cols);
  check_shape(op, "dlogits", dlogits, frames.rows(), logits.cols);
  check_arguments(op, frames, targets, labels, blank, logits.cols);
  const int64_t* offsets = saved.offsets.data<int64_t>();
  const T* lse = saved.lse.data<T>();
  const int64_t vocabulary = logits.cols;
  parallel_tasks(ctx, frames.count(), 16 * frames.rows() * vocabulary, [&](int64_t i) {
    if (frames.length(i) == 0) return;
    const States<T> states(labels + targets.begin(i), targets.length(i), blank);
    const int64_t n = states.count(), length = frames.length(i);
    const T *alpha = saved.alpha.data<T>() + offsets[i], *beta = saved.beta.data<T>() + offsets[i];
    // The saved loss may be the 0 that stands for infinity, so log Z is read off alpha again.
    const T total = log_total(alpha + (length - 1) * n, n);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t r = frames.begin(i) + t;
      T* out = dlogits.row(r);
      if (total == kMinusInfinity<T>) {
        std::fill_n(out, vocabulary, T(0));
        continue;
      }
      const T *x = logits.row(r), base = lse[r];
#pragma omp simd
      for (int64_t v = 0; v < vocabulary; ++v) out[v] = *grad * exp_of(x[v] - base);
      for (int64_t s = 0; s < n; ++s)
        out[states.symbol[s]] -= *grad * exp_of(alpha[t * n + s] + beta[t * n + s] - total);
    }
  });
}

#define TACTUS_INSTANTIATE(T)                                                                                        \
  template void ctc_forward<Cpu, T>(const Context&, Mat<const T>, const Segments&, const Segments&, const int32_t*,  \
                                    int, bool, T*, CtcSaved&);                                                       \
  template void ctc_backward<Cpu, T>(const Context&, Mat<const T>, const Segments&, const Segments&, const int32_t*, \
                                     int, const T*, const CtcSaved&, const T*, Mat<T>);
TACTUS_INSTANTIATE(double)
TACTUS_INSTANTIATE(float)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
