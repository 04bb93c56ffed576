// Connectionist temporal classification (Graves et al. 2006), log domain, softmax included.
#pragma once

#include "core/segments.h"

namespace tactus {

/// What forward leaves for backward.
struct CtcSaved {
  Tensor alpha, beta;  ///< acc type, for each utterance [frames, 2 labels + 1] at `offsets`
  Tensor lse;          ///< acc type [rows]
  Tensor offsets;      ///< i64 [count]
};

/// logits [frames.rows, V]; labels [targets.rows] packed, without blanks. loss [count] = -log p(labels | logits);
/// utterances without any alignment (too few frames, repeats counted; no frames) get 0 and no gradient when
/// zero_infinity, else +inf.
template <class D, class T>
void ctc_forward(const Context& ctx, Mat<const T> logits, const Segments& frames, const Segments& targets,
                 const int32_t* labels, int blank, bool zero_infinity, acc_t<T>* loss, CtcSaved& saved);
/// dlogits assigned: (*grad) * (softmax - posterior), zero rows for utterances without alignment.
template <class D, class T>
void ctc_backward(const Context& ctx, Mat<const T> logits, const Segments& frames, const Segments& targets,
                  const int32_t* labels, int blank, const acc_t<T>* loss, const CtcSaved& saved, const acc_t<T>* grad,
                  Mat<T> dlogits);

}  // namespace tactus
