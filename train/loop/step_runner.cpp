#include "train/loop/step_runner.h"

#include <algorithm>
#include <cmath>

#include "core/profile_range.h"

namespace tactus {

StepRunner::StepRunner(SpeechTask& task, Optimiser& optimiser)
    : task_(task),
      optimiser_(optimiser),
      input_(task.ctx()),
      sums_(task.ctx().zeros({kStepSums}, DType::f64, MemoryTag::workspace)),
      readback_(task.ctx(), kStepSums) {}

void StepRunner::add(Batch batch, uint64_t key) {
  const Context& ctx = task_.ctx();
  ctx.allocator().set_hint("batch of " + std::to_string(batch.size()) + " utterances (" +
                           std::string(batch.ids.front()) + ", ...), " + std::to_string(batch.frames()) +
                           " frames: lower data.batches.max_frames");
  now_.ids.insert(now_.ids.end(), batch.ids.begin(), batch.ids.end());
  now_.frames += batch.frames();
  const SpeechBatch device = task_.to_device(batch, input_);
  Tape tape(ctx);
  SpeechLoss loss = [&] {
    const ProfileRange range("forward");
    return task_.loss(tape, device, true, key);
  }();
  const Var total = loss.total;
  loss.total = {};
  {
    const ProfileRange range("backward");
    tape.backward(total);
  }
  input_.consumed();
  now_.tokens += loss.tokens;
  now_.ctc_infeasible += loss.ctc_infeasible;
  dispatch(ctx, total.value().dtype(), [&]<class D, class A>() {
    if constexpr (std::is_same_v<A, acc_t<A>>) {
      add_step_sums<D, A>(ctx, total.value().data<const A>(), loss.nll.data<const A>(),
                          loss.ctc.defined() ? loss.ctc.data<const A>() : nullptr, loss.correct.elements(),
                          loss.correct.data<const int32_t>(), sums_.data<double>());
    }
  });
}

void StepRunner::launch(int64_t update, double divisor) {
  const ProfileRange range("optimiser");
  double* sums = sums_.data<double>();
  rate_ = optimiser_.launch(update, divisor, sums + kSumLoss, sums + kSquaredNorm);
  divisor_ = divisor;
  readback_.start(sums_);
  task_.ctx().fill_zero(sums_);
  launched_ = std::move(now_);
  now_ = {};
  pending_ = true;
}

StepRunner::Result StepRunner::finish() {
  Result r;
  std::copy_n(readback_.wait(), static_cast<size_t>(kStepSums), r.sums);
  r.tokens = launched_.tokens, r.frames = launched_.frames, r.ctc_infeasible = launched_.ctc_infeasible;
  r.ids = std::move(launched_.ids);
  r.rate = rate_;
  r.norm = std::sqrt(r.sums[kSquaredNorm]) / divisor_;
  pending_ = false;
  return r;
}

}  // namespace tactus
