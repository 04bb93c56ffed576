// Temporal compression of MTLA (Deng et al., "Multi-head temporal latent attention", NeurIPS 2025, eq. 12-14): a gate
// for each latent and the running sum of gated latents inside chunks of `stride` rows, counted over [prompt ; own] of
// each sequence.
//   w_j = sigmoid(<code[chunk(j)], p_j>)      chat_t = sum over j <= t in the chunk of t of w_j c_j
// code = fc_c(PE(chunk)), p = fc_p(c). Sums are kept in acc_t<T>.
#pragma once

#include "kernels/attention/key_layout.h"

namespace tactus {

/// Interleaved sin/cos code of chunk numbers 0 .. chunks-1 (0-based), [chunks, width], computed in double; width even.
Tensor chunk_code(const Context& ctx, int64_t chunks, int64_t width, DType dtype);

/// Rows of one key source. All empty (rows 0) where there is no prompt.
template <class T>
struct GateRows {
  Mat<const T> c;  ///< latents [rows, r]
  Mat<const T> p;  ///< fc_p(c) [rows, h]
};
template <class T>
struct GateSums {
  Mat<T> sum;      ///< running sums [rows, r]
  acc_t<T>* gate;  ///< w [rows], saved for backward
};
template <class T>
struct GateGradients {
  Mat<T> dc, dp;  ///< assigned
};

template <class D, class T>
void gate_sum_forward(const Context& ctx, KeyLayout layout, int stride, GateRows<T> prompt, GateRows<T> own,
                      Mat<const T> code, GateSums<T> prompt_out, GateSums<T> own_out);
/// dsum: gradients of the running sums. dcode [chunks, h] is assigned: summed over sequences in order.
template <class D, class T>
void gate_sum_backward(const Context& ctx, KeyLayout layout, int stride, GateRows<T> prompt, GateRows<T> own,
                       Mat<const T> code, const acc_t<T>* prompt_gate, const acc_t<T>* own_gate,
                       Mat<const T> prompt_dsum, Mat<const T> own_dsum, GateGradients<T> prompt_out,
                       GateGradients<T> own_out, Mat<T> dcode);

}  // namespace tactus
