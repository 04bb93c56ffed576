#include "train/loop/plan_check.h"

#include <chrono>
#include <sstream>

#include "train/loop/optimiser.h"
#include "train/loop/speech_task.h"

namespace tactus {
namespace {

int64_t largest_batch(const BatchPlan& plan, const CorpusSplit& split) {
  int64_t best = 0, most = -1;
  for (int64_t b = 0; b < plan.batches(); ++b) {
    int64_t frames = 0;
    for (int32_t u : plan.batch(b)) frames += split.frames(u);
    if (frames > most) most = frames, best = b;
  }
  return best;
}

}  // namespace

std::string check_plan(const RunOptions& options) {
  Corpus corpus = Corpus::open(options.data.corpus);
  const Vocabularies vocabularies = vocabularies_of(options, corpus);
  const auto train = corpus.split(options.data.train), valid = corpus.split(options.data.valid);
  const BatchPlan plan = BatchPlan::for_training(*train, options.data.batches, static_cast<uint64_t>(options.seed));
  const Context ctx = make_context(options.device, options.threads);
  BatchContents contents;
  if (options.ctc_weight > 0) contents.ctc = ctc_target_from_string(options.ctc_target);
  const Batch batch = make_batch(train, plan, contents, 0, largest_batch(plan, *train));
  SpeechTask task(ctx, options, vocabularies.target, vocabularies.ctc, true);
  task.store().initialise(static_cast<uint64_t>(options.seed));
  const Optimiser optimiser(options.optimiser, task.store(), options.train.max_updates);
  ctx.allocator().set_hint("lower data.batches.max_frames");
  double seconds = 0;
  for (int i = 0; i < 2; ++i) {  // the second pass is timed: the first one fills the memory pool
    const auto begin = std::chrono::steady_clock::now();
    Tape tape(ctx);
    const SpeechLoss loss = task.loss(tape, task.to_device(batch), true, 1);
    tape.backward(loss.total);
    ctx.synchronize();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  const MemoryUse use = ctx.allocator().use();
  const int64_t updates_per_epoch = (plan.batches() + options.train.accumulate - 1) / options.train.accumulate;
  std::ostringstream out;
  out << "device: " << ctx.device_name() << ", computing in " << to_string(task.compute_type()) << "\n";
  out << "corpus: " << corpus.path() << ", " << options.data.train << " " << train->size() << " utterances ("
      << train->total_frames() << " frames), " << options.data.valid << " " << valid->size() << "\n";
  out << "plan: " << plan.batches() << " batches and " << updates_per_epoch << " updates an epoch; "
      << plan.drops().to_string() << "\n";
  out << "model: " << task.store().count() << " parameters, vocabulary " << vocabularies.target << "\n";
  out << "largest batch: " << batch.size() << " utterances, " << batch.frames() << " frames, " << batch.tokens()
      << " tokens; forward and backward " << seconds << " s\n";
  out << "peak memory: " << (use.total_peak >> 20) << " MiB (";
  for (int i = 0; i < kMemoryTags; ++i)
    out << (i ? ", " : "") << to_string(static_cast<MemoryTag>(i)) << " " << (use.peak[i] >> 20);
  out << ")\n";
  return out.str();
}

}  // namespace tactus
