#include "train/loop/plan_check.h"

#include <chrono>
#include <sstream>

#include "train/loop/batch_fit.h"
#include "train/loop/train_data.h"
#include "train/optimiser/optimiser.h"
#include "train/tasks/speech_task.h"

namespace tactus {

std::string check_plan(const RunOptions& wanted) {
  const RunOptions options = fit_batches(wanted);
  const TrainData data = TrainData::open(options.data, static_cast<uint64_t>(options.seed));
  const Vocabularies vocabularies = vocabularies_of(options, data.corpus);
  const BatchPlan& plan = data.plan;
  const Context ctx = make_context(options.device, options.threads);
  SpeechTask task(ctx, options, vocabularies.target, vocabularies.ctc, true);
  BatchContents contents = evaluation_contents(data.corpus, data.normaliser, task.compute_type());
  if (options.ctc_weight > 0) contents.ctc = ctc_target_from_string(options.ctc_target);
  const Batch batch = make_batch(plan, contents, 0, plan.largest());
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
  for (const TrainingPart& part : data.parts) {
    out << "corpus: " << part.split->path() << ", " << part.name << " " << part.split->size() << " utterances ("
        << part.split->total_frames() << " frames)\n";
  }
  out << "validation: " << data.corpus.path() << ", " << options.data.valid << " " << data.valid->size()
      << " utterances\n";
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
