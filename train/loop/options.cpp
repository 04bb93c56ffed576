#include "train/loop/options.h"

namespace tactus {

void MixOptions::visit(ConfigVisitor& v) {
  v.field("corpus", corpus,
          {.doc = "Corpus file; features and tokenizers must be those of data.corpus", .required = true});
  v.field("split", split, {.doc = "Split to train on"});
  v.field("weight", weight, {.doc = "Times its size: how often its batches come", .min = 1e-6, .max = 1e6});
}

void DataOptions::visit(ConfigVisitor& v) {
  v.field("corpus", corpus,
          {.doc = "Corpus file made by `tactus prepare`; gives tokenizers and validation", .required = true});
  v.field("train", train, {.doc = "Split to train on, where there is no mix"});
  v.field("valid", valid, {.doc = "Split for validation"});
  v.sections("mix", mix, "Corpora to train on together, by free names; none: split `train` of `corpus`");
  v.field("temperature", temperature,
          {.doc = "Evens out a mix: a corpus gives a share of batches ~ (weight x size)^(1/temperature)",
           .min = 0.01,
           .max = 1e6});
  v.field("cmvn", cmvn,
          {.doc = "Normalisation of frames: mean and variance of each utterance, its mean alone, those of a corpus, or "
                  "none",
           .choices = {"utterance", "utterance_mean", "global", "none"}});
  v.field("cmvn_stats", cmvn_stats, {.doc = "cmvn: global: file of statistics; none: those of the training splits"});
  v.field("loader_threads", loader_threads,
          {.doc = "Threads that build batches ahead; does not change the result", .min = 1, .max = 256});
  v.field("prefetch", prefetch, {.doc = "Batches ready or about to be", .unit = "batches", .min = 1, .max = 1024});
  v.section("batches", batches, "How utterances are packed into batches");
  v.section("specaugment", specaugment, "Masking of training features");
}

void OptimiserOptions::visit(ConfigVisitor& v) {
  v.field("learning_rate", learning_rate, {.doc = "Peak learning rate, at the end of warm-up", .min = 0});
  v.field("beta1", beta1, {.doc = "Decay of Adam's first moment", .min = 0, .max = 0.99999});
  v.field("beta2", beta2, {.doc = "Decay of Adam's second moment", .min = 0, .max = 0.9999999});
  v.field("eps", eps, {.doc = "Added to the root of the second moment, before bias correction", .min = 0});
  v.field("weight_decay", weight_decay, {.doc = "Decoupled weight decay", .min = 0});
  v.field("clip_norm", clip_norm, {.doc = "Largest gradient norm; 0: no clipping", .min = 0});
  v.field("schedule", schedule,
          {.doc = "After warm-up: inverse_sqrt (the papers'), or linear or cosine decay to 0 at the last update",
           .choices = {"inverse_sqrt", "linear", "cosine"}});
  v.field("warmup_updates", warmup_updates, {.doc = "Updates of linear warm-up from 0", .unit = "updates", .min = 1});
}

void LoopOptions::visit(ConfigVisitor& v) {
  v.field("max_updates", max_updates, {.doc = "Training ends after this many updates", .unit = "updates", .min = 1});
  v.field("max_epochs", max_epochs,
          {.doc = "Training ends after this many epochs; 0: no limit", .unit = "epochs", .min = 0});
  v.field("accumulate", accumulate, {.doc = "Batches of one update", .unit = "batches", .min = 1});
  v.field("log_every", log_every, {.doc = "A line in log.jsonl every so many updates", .unit = "updates", .min = 1});
  v.field("validate_every", validate_every,
          {.doc = "Validation every so many updates; 0: at the end of each epoch", .unit = "updates", .min = 0});
  v.field("save_every", save_every,
          {.doc = "Further checkpoints every so many updates; 0: at validation only", .unit = "updates", .min = 0});
  v.field("keep_best", keep_best, {.doc = "Best checkpoints to keep (model file only)", .min = 1});
  v.field("keep_last", keep_last, {.doc = "Newest checkpoints to keep with everything that resuming needs", .min = 1});
  v.field("metric", metric, {.doc = "What `best` means", .choices = {"accuracy", "loss"}});
  v.field("patience", patience, {.doc = "Stop after so many validations without a better metric; 0: never", .min = 0});
  v.field("max_skipped", max_skipped,
          {.doc = "Consecutive updates with a loss or gradient that is not finite before the run fails", .min = 1});
}

void RunOptions::visit(ConfigVisitor& v) {
  v.field("task", task, {.doc = "What is trained", .choices = {"speech_translation"}});
  v.field("seed", seed, {.doc = "Seed of initialisation, order, masks and dropout", .min = 0});
  v.field("device", device, {.doc = "Where to train; auto: a GPU if there is one", .choices = {"auto", "cpu", "cuda"}});
  v.field("dtype", dtype, {.doc = "Type of activations and working weights", .choices = {"f32", "bf16", "f64"}});
  v.field("threads", threads,
          {.doc = "CPU threads; 0: all cores. Part of what makes CPU runs repeatable", .min = 0, .max = 1024});
  v.section("data", data, "Corpus and batches");
  v.section("model", model, "Shape of the model");
  v.field("label_smoothing", label_smoothing, {.doc = "Label smoothing of the cross-entropy", .min = 0, .max = 0.99});
  v.field("ctc_weight", ctc_weight, {.doc = "Weight of the auxiliary CTC loss on encoder states; 0: none", .min = 0});
  v.field("ctc_target", ctc_target, {.doc = "Text of the CTC loss", .choices = {"source", "target"}});
  v.section("optimiser", optimiser, "Adam in fairseq's form and its learning-rate schedule");
  v.section("train", train, "Length of the run, validation, checkpoints");
  v.section("decode", decode, "Beam search");
}

}  // namespace tactus
