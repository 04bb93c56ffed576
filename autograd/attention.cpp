#include "autograd/attention.h"

#include <optional>

#include "autograd/check.h"

namespace tactus {
namespace {

struct Saved {
  AttentionShape shape;
  Slice q;
  KeyInput prompt, own;
  std::optional<Segments> prompt_segments;
  Segments own_segments;
  Tensor out, lse;

  KeyLayout layout() const { return {prompt_segments ? prompt_segments->view() : SegmentsView{}, own_segments.view()}; }
};

template <class T>
KeyRows<const T> rows_of(const KeyInput& in) {
  return {in.k.mat<T>(), in.shared.mat<T>(), in.v.mat<T>()};
}

template <class D, class T>
void run_backward(Tape& tape, const Saved& s, const Tensor& dout) {
  GradientWriter writer(tape);
  auto targets = [&](const KeyInput& in) {
    return KeyRows<T>{writer.slot_or_scratch<T>(in.k), writer.slot_or_scratch<T>(in.shared),
                      writer.slot_or_scratch<T>(in.v)};
  };
  const Mat<T> dq = writer.slot_or_scratch<T>(s.q);
  const KeyRows<T> dprompt = targets(s.prompt), down = targets(s.own);
  attention_backward<D, T>(tape.ctx(), s.shape, s.layout(), s.q.mat<T>(), rows_of<T>(s.prompt), rows_of<T>(s.own),
                           s.out.mat<const T>(), s.lse.data<const acc_t<T>>(), dout.mat<const T>(), dq, dprompt, down);
}

void check_keys(const AttentionShape& shape, const KeyInput& in, int64_t rows, const char* k, const char* shared,
                const char* v) {
  check_columns("attention", k, in.k, rows, shape.kv_heads * shape.d_key);
  check_columns("attention", v, in.v, rows, shape.kv_heads * shape.d_value);
  if (shape.d_shared > 0) check_columns("attention", shared, in.shared, rows, shape.d_shared);
}

}  // namespace

Var attention(Tape& tape, const AttentionShape& shape, const Slice& q, const KeyInput& prompt, const KeyInput& own,
              const Segments* prompt_segments, const Segments& own_segments) {
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0 || shape.stride < 1) {
    throw ShapeError("attention: " + std::to_string(shape.heads) + " heads over " + std::to_string(shape.kv_heads) +
                     " key heads at stride " + std::to_string(shape.stride) +
                     ", expected a multiple of the key heads and a positive stride");
  }
  check_columns("attention", "q", q, own_segments.rows(), shape.heads * (shape.d_key + shape.d_shared));
  check_keys(shape, own, own_segments.rows(), "own k", "own shared", "own v");
  Saved saved{shape, q, {}, own, {}, own_segments, {}, {}};
  if (prompt_segments != nullptr) {
    if (prompt_segments->count() != own_segments.count()) {
      throw ShapeError("attention: " + std::to_string(prompt_segments->count()) + " prompts for " +
                       std::to_string(own_segments.count()) + " sequences");
    }
    check_keys(shape, prompt, prompt_segments->rows(), "prompt k", "prompt shared", "prompt v");
    saved.prompt = prompt;
    saved.prompt_segments = *prompt_segments;
  }
  const Context& ctx = tape.ctx();
  const DType dtype = q.var.value().dtype();
  saved.out = ctx.empty({q.rows(), int64_t{shape.heads} * shape.d_value}, dtype);
  saved.lse = ctx.empty({q.rows(), shape.heads}, accumulator_of(dtype));
  dispatch(ctx, dtype, [&]<class D, class T>() {
    attention_forward<D, T>(ctx, shape, saved.layout(), q.mat<T>(), rows_of<T>(saved.prompt), rows_of<T>(own),
                            saved.out.mat<T>(), saved.lse.data<acc_t<T>>());
  });
  const std::vector<Var> inputs{
      q.var, own.k.var, own.v.var, own.shared.var, saved.prompt.k.var, saved.prompt.v.var, saved.prompt.shared.var};
  return tape.record(saved.out, inputs, [saved, dtype](Tape& tape, std::span<const Tensor> grads) {
    dispatch(tape.ctx(), dtype, [&]<class D, class T>() { run_backward<D, T>(tape, saved, grads[0]); });
  });
}

}  // namespace tactus
