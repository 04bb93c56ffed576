// CUDA connectionist temporal classification: the forward and the backward recursion of an utterance run in two blocks
// at the same time, states across threads, in the log domain and f32. alpha includes the emission of its own frame and
// beta does not, so log(posterior) = alpha + beta - log Z.
#include "kernels/ctc.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"
#include "kernels/shared/device_softmax.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kRowThreads = 128;

template <class T>
struct Args {
  Mat<const T> logits;
  const int32_t *frame_offsets, *target_offsets, *labels;
  const int64_t* offsets;
  const float* lse;
  float *alpha, *beta;
  int blank;
};

/// One utterance: `states` = 2 labels + 1, state 2i + 1 is label i, the others are blanks.
template <class T>
struct Utterance {
  const T* logits;
  int64_t ld;
  const float* lse;
  const int32_t* labels;
  float *alpha, *beta;
  int32_t frames, states;
  int blank;

  __device__ Utterance(const Args<T>& a, int32_t i) {
    const int32_t begin = a.frame_offsets[i];
    logits = a.logits.row(begin), ld = a.logits.ld, lse = a.lse + begin;
    labels = a.labels + a.target_offsets[i];
    alpha = a.alpha + a.offsets[i], beta = a.beta + a.offsets[i];
    frames = a.frame_offsets[i + 1] - begin;
    states = 2 * (a.target_offsets[i + 1] - a.target_offsets[i]) + 1;
    blank = a.blank;
  }
  __device__ float log_p(int32_t t, int32_t s) const {
    return to_float(logits[t * ld + (s & 1 ? labels[s / 2] : blank)]) - lse[t];
  }
  /// True where state s may follow state s - 2 directly: a label unlike the one before.
  __device__ bool skips(int32_t s) const { return s >= 3 && (s & 1) && labels[s / 2] != labels[s / 2 - 1]; }
  __device__ int64_t at(int32_t t, int32_t s) const { return static_cast<int64_t>(t) * states + s; }
};

__device__ inline float log_sum(float a, float b, float c) {
  const float top = fmaxf(a, fmaxf(b, c));
  const float base = top == kNegInf ? 0.0f : top;  // all -inf: subtracting the maximum would make a NaN
  return base + logf(expf(a - base) + expf(b - base) + expf(c - base));
}

/// log Z from the last frame's alpha: an alignment ends in the last label or the blank after it.
template <class T>
__device__ float log_total(const Utterance<T>& u) {
  const float* last = u.alpha + u.at(u.frames - 1, 0);
  return log_sum(last[u.states - 1], u.states > 1 ? last[u.states - 2] : kNegInf, kNegInf);
}

template <class T>
__global__ void __launch_bounds__(kRowThreads) log_sum_exp_kernel(Mat<const T> logits, float* lse, bool wide) {
  __shared__ float scratch[2 * kWarp];
  const float value = block_log_sum_exp(logits.row(blockIdx.x), logits.cols, 1.0f, wide, scratch);
  if (threadIdx.x == 0) lse[blockIdx.x] = value;
}

template <class T>
__device__ void alpha_recursion(const Utterance<T>& u) {
  for (int32_t t = 0; t < u.frames; ++t) {
    const float* before = u.alpha + u.at(t - 1, 0);  // not read at t = 0
    for (int32_t s = static_cast<int32_t>(threadIdx.x); s < u.states; s += static_cast<int32_t>(blockDim.x)) {
      float sum = s < 2 ? 0.0f : kNegInf;
      if (t > 0) sum = log_sum(before[s], s >= 1 ? before[s - 1] : kNegInf, u.skips(s) ? before[s - 2] : kNegInf);
      u.alpha[u.at(t, s)] = sum + u.log_p(t, s);
    }
    __syncthreads();  // the next frame reads what other threads of this block wrote
  }
}

template <class T>
__device__ void beta_recursion(const Utterance<T>& u) {
  for (int32_t t = u.frames - 1; t >= 0; --t) {
    const float* after = u.beta + u.at(t + 1, 0);  // not read in the last frame
    for (int32_t s = static_cast<int32_t>(threadIdx.x); s < u.states; s += static_cast<int32_t>(blockDim.x)) {
      float sum = s + 2 >= u.states ? 0.0f : kNegInf;
      if (t + 1 < u.frames) {
        const float step = s + 1 < u.states ? after[s + 1] + u.log_p(t + 1, s + 1) : kNegInf;
        const float skip = s + 2 < u.states && u.skips(s + 2) ? after[s + 2] + u.log_p(t + 1, s + 2) : kNegInf;
        sum = log_sum(after[s] + u.log_p(t + 1, s), step, skip);
      }
      u.beta[u.at(t, s)] = sum;
    }
    __syncthreads();
  }
}

/// Blocks 2i and 2i + 1: alpha (with the loss) and beta of utterance i.
template <class T>
__global__ void __launch_bounds__(256) recursion_kernel(Args<T> args, bool zero_infinity, float* loss) {
  const int32_t i = static_cast<int32_t>(blockIdx.x / 2);
  const Utterance<T> u(args, i);
  if (blockIdx.x % 2 == 1) {
    beta_recursion(u);
    return;
  }
  alpha_recursion(u);
  if (threadIdx.x != 0) return;
  const float total = u.frames > 0 ? log_total(u) : kNegInf;
  loss[i] = total == kNegInf && zero_infinity ? 0.0f : -total;
}

/// For each label of each utterance the next equal one (-1: none), and whether an equal one stands before it. A
/// symbol's posterior is then summed along its chain by one thread, in order and without atomics.
static __global__ void __launch_bounds__(256)
    chain_kernel(const int32_t* target_offsets, const int32_t* labels, int32_t* next, int32_t* repeated) {
  const int32_t begin = target_offsets[blockIdx.x], end = target_offsets[blockIdx.x + 1];
  for (int32_t i = begin + static_cast<int32_t>(threadIdx.x); i < end; i += static_cast<int32_t>(blockDim.x)) {
    int32_t following = i + 1, before = i - 1;
    while (following < end && labels[following] != labels[i]) ++following;
    while (before >= begin && labels[before] != labels[i]) --before;
    next[i] = following < end ? following : -1;
    repeated[i] = before >= begin;
  }
}

struct BackwardArgs {
  const int32_t *row_segment, *next, *repeated;
  const float *loss, *grad;
};

/// One block per frame: softmax of the row, then the posteriors of the symbols that occur in the labels.
template <class T>
__global__ void __launch_bounds__(kRowThreads)
    backward_kernel(Args<T> args, BackwardArgs b, Mat<T> dlogits, bool wide) {
  __shared__ float scratch[kWarp];
  const int64_t r = blockIdx.x;
  const int32_t i = b.row_segment[r];
  const Utterance<T> u(args, i);
  const int32_t t = static_cast<int32_t>(r - args.frame_offsets[i]);
  // The saved loss may be the 0 that stands for infinity, so log Z is read off alpha again.
  const float total = b.loss[i] != b.loss[i] ? b.loss[i] : log_total(u), grad = *b.grad, base = u.lse[t];
  const bool aligned = total != kNegInf;
  const T* x = args.logits.row(r);
  T* out = dlogits.row(r);
  for (int64_t c = static_cast<int64_t>(threadIdx.x) * kGroup; c < dlogits.cols; c += kRowThreads * kGroup) {
    const int n = static_cast<int>(dlogits.cols - c < kGroup ? dlogits.cols - c : kGroup);
    float v[kGroup];
    load_group(x + c, n, wide, v);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) v[j] = aligned ? grad * expf(v[j] - base) : 0.0f;
    store_group(out + c, n, wide, v);
  }
  if (!aligned) return;  // the whole block
  float blanks = 0;
  for (int32_t s = 2 * static_cast<int32_t>(threadIdx.x); s < u.states; s += 2 * kRowThreads) {
    blanks += expf(u.alpha[u.at(t, s)] + u.beta[u.at(t, s)] - total);
  }
  blanks = block_sum(blanks, scratch);  // its barriers also order the stores above before those below
  if (threadIdx.x == 0) out[u.blank] = from_float<T>(grad * (expf(to_float(x[u.blank]) - base) - blanks));
  const int32_t first = args.target_offsets[i];
  for (int32_t l = static_cast<int32_t>(threadIdx.x); l < u.states / 2; l += kRowThreads) {
    if (b.repeated[first + l]) continue;
    float posterior = 0;
    for (int32_t k = first + l; k >= 0; k = b.next[k]) {
      const int64_t cell = u.at(t, 2 * (k - first) + 1);
      posterior += expf(u.alpha[cell] + u.beta[cell] - total);
    }
    const int32_t symbol = u.labels[l];
    out[symbol] = from_float<T>(grad * (expf(to_float(x[symbol]) - base) - posterior));
  }
}

void check_arguments(const char* op, const Segments& frames, const Segments& targets, int blank, int64_t vocabulary) {
  check_value(frames.count() == targets.count(), op, "number of label sequences", "the number of utterances",
              targets.count());
  check_value(frames.rows() == 0 || (blank >= 0 && blank < vocabulary), op, "blank", "a column of logits", blank);
}

template <class T>
Args<T> make_args(Mat<const T> logits, const Segments& frames, const Segments& targets, const int32_t* labels,
                  int blank, const CtcSaved& saved) {
  return {logits,
          frames.view().offsets,
          targets.view().offsets,
          labels,
          saved.offsets.data<const int64_t>(),
          saved.lse.data<const float>(),
          saved.alpha.data<float>(),
          saved.beta.data<float>(),
          blank};
}

}  // namespace

template <class D, class T>
void ctc_forward(const Context& ctx, Mat<const T> logits, const Segments& frames, const Segments& targets,
                 const int32_t* labels, int blank, bool zero_infinity, acc_t<T>* loss, CtcSaved& saved) {
  check_shape("ctc_forward", "logits", logits, frames.rows(), logits.cols);
  check_arguments("ctc_forward", frames, targets, blank, logits.cols);
  std::vector<int64_t> offsets(static_cast<size_t>(frames.count()));
  int64_t cells = 0;
  for (int64_t i = 0; i < frames.count(); ++i) {
    offsets[static_cast<size_t>(i)] = cells;
    cells += frames.length(i) * (2 * targets.length(i) + 1);
  }
  saved.alpha = ctx.empty(Shape{cells}, DType::f32);
  saved.beta = ctx.empty(Shape{cells}, DType::f32);
  saved.lse = ctx.empty(Shape{frames.rows()}, DType::f32);
  saved.offsets = ctx.upload(offsets);
  if (frames.count() == 0) return;
  if (frames.rows() > 0) {
    log_sum_exp_kernel<T><<<row_grid(frames.rows()), kRowThreads, 0, stream_of(ctx)>>>(logits, saved.lse.data<float>(),
                                                                                       wide_rows(logits));
    cuda_check_launch("ctc_forward");
  }
  const int64_t threads = std::min<int64_t>(ceil_div(2 * targets.longest() + 1, kWarp) * kWarp, 256);
  recursion_kernel<T><<<row_grid(2 * frames.count()), static_cast<unsigned>(threads), 0, stream_of(ctx)>>>(
      make_args(logits, frames, targets, labels, blank, saved), zero_infinity, loss);
  cuda_check_launch("ctc_forward");
}

template <class D, class T>
void ctc_backward(const Context& ctx, Mat<const T> logits, const Segments& frames, const Segments& targets,
                  const int32_t* labels, int blank, const acc_t<T>* loss, const CtcSaved& saved, const acc_t<T>* grad,
                  Mat<T> dlogits) {
  check_shape("ctc_backward", "logits", logits, frames.rows(), logits.cols);
  check_shape("ctc_backward", "dlogits", dlogits, frames.rows(), logits.cols);
  check_arguments("ctc_backward", frames, targets, blank, logits.cols);
  if (frames.rows() == 0) return;
  const Tensor next = ctx.empty(Shape{targets.rows()}, DType::i32, MemoryTag::workspace);
  const Tensor repeated = ctx.empty(Shape{targets.rows()}, DType::i32, MemoryTag::workspace);
  chain_kernel<<<row_grid(targets.count()), 256, 0, stream_of(ctx)>>>(targets.view().offsets, labels,
                                                                      next.data<int32_t>(), repeated.data<int32_t>());
  cuda_check_launch("ctc_backward");
  const BackwardArgs b{frames.view().row_segment, next.data<const int32_t>(), repeated.data<const int32_t>(), loss,
                       grad};
  backward_kernel<T><<<row_grid(frames.rows()), kRowThreads, 0, stream_of(ctx)>>>(
      make_args(logits, frames, targets, labels, blank, saved), b, dlogits, wide_rows(logits) && wide_rows(dlogits));
  cuda_check_launch("ctc_backward");
}

#define TACTUS_INSTANTIATE(T)                                                                                         \
  template void ctc_forward<Cuda, T>(const Context&, Mat<const T>, const Segments&, const Segments&, const int32_t*,  \
                                     int, bool, float*, CtcSaved&);                                                   \
  template void ctc_backward<Cuda, T>(const Context&, Mat<const T>, const Segments&, const Segments&, const int32_t*, \
                                      int, const float*, const CtcSaved&, const float*, Mat<T>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
