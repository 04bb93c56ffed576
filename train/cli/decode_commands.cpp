// tactus decode, score.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>

#include "train/cli/commands.h"
#include "train/metrics/score.h"
#include "train/predict/decoder_run.h"

namespace tactus {
namespace {

struct DecodeArguments {
  std::string model, data, corpus, out, device;
  int64_t beam = 0, threads = 0;
  std::vector<std::string> set;
};

void print_costs(const DecodeReport& r) {
  const auto mebibytes = [](double bytes) { return bytes / (1 << 20); };
  std::fprintf(stderr, "decoded %zu utterances, %lld frames, %lld tokens in %.3f s (encoder and search)\n",
               r.lines.size(), static_cast<long long>(r.frames), static_cast<long long>(r.tokens), r.seconds);
  std::fprintf(stderr, "memory: mean of batch peaks %.1f MiB, peak %.1f MiB", mebibytes(r.mean_memory),
               mebibytes(static_cast<double>(r.memory.total_peak)));
  for (int i = 0; i < kMemoryTags; ++i) {
    if (r.memory.peak[i] > 0) {
      std::fprintf(stderr, ", %s %.1f", to_string(static_cast<MemoryTag>(i)).c_str(),
                   mebibytes(static_cast<double>(r.memory.peak[i])));
    }
  }
  std::fprintf(stderr, "\ncache: %.2f MiB in use at most, %.2f MiB if each hypothesis kept its own prompt\n",
               mebibytes(static_cast<double>(r.cache.payload)),
               mebibytes(static_cast<double>(r.cache.payload_unshared)));
  if (r.empty > 0)
    std::fprintf(stderr, "too short for the encoder, so left empty: %lld utterances\n",
                 static_cast<long long>(r.empty));
  if (r.unchanging > 0)
    std::fprintf(stderr, "silent (every frame the same), so left empty: %lld utterances\n",
                 static_cast<long long>(r.unchanging));
}

void decode(const DecodeArguments& a) {
  std::vector<std::string> settings = a.set;
  if (a.beam > 0) settings.push_back("decode.beam=" + std::to_string(a.beam));
  LoadedModel model = load_model(a.model, a.device, a.threads, settings);
  Corpus corpus = Corpus::open(a.corpus.empty() ? model.options.data.corpus : a.corpus);
  const DecodeReport report = decode_split(model, corpus, a.data);
  if (a.out.empty()) {
    std::cout << decoded_text(report);
  } else {
    write_decoded(a.out, report);
  }
  print_costs(report);
}

struct ScoreArguments {
  std::string hypotheses, references, metrics = "bleu", against, column = "tgt_text", tokenizer = "13a";
  bool lowercase = false;
};

void score(const ScoreArguments& a) {
  ScoreOptions options;
  options.reference_column = a.column;
  options.metric.bleu.tokenizer = bleu_tokenizer(a.tokenizer);
  options.metric.bleu.lowercase = a.lowercase;
  const std::vector<std::string> names = parse_metric_names(a.metrics);
  for (const MetricScore& s : score_files(a.hypotheses, a.references, names, options))
    std::cout << s.to_string() << "\n";
  if (a.against.empty()) return;
  for (const PairedBootstrap& p : compare_files(a.hypotheses, a.against, a.references, names, options))
    std::cout << p.to_string() << "\n";
}

}  // namespace

void add_decode_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("decode", "Decode a split of a corpus; one line for each utterance, always");
  auto a = std::make_shared<DecodeArguments>();
  command
      ->add_option("MODEL", a->model,
                   "Run folder (its average, else its best checkpoint), checkpoint folder or model file")
      ->required();
  command->add_option("--data", a->data, "Split to decode")->required();
  command->add_option("--corpus", a->corpus, "Corpus file; default: the one trained on");
  command->add_option("--beam", a->beam, "Hypotheses kept; 1 is greedy; default: as configured")
      ->check(CLI::PositiveNumber);
  command->add_option("--set", a->set, "Override a key: --set decode.length_penalty=0.6")->allow_extra_args(false);
  command->add_option("--out", a->out, "File to write; default: standard output");
  command->add_option("--device", a->device, "cpu or cuda; default: a GPU if there is one");
  command->add_option("--threads", a->threads, "CPU threads; default: all cores")->check(CLI::PositiveNumber);
  command->callback([a] { decode(*a); });
}

void add_score_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("score", "Score hypotheses against references");
  auto a = std::make_shared<ScoreArguments>();
  command->add_option("HYP", a->hypotheses, "Decoded table (id, hypothesis, score) or plain text")->required();
  command->add_option("REF", a->references, "Manifest with id and reference column, or plain text")->required();
  command->add_option("--metric", a->metrics, "bleu, wer, cer, accuracy, first_token_accuracy; several with commas");
  command->add_option("--against", a->against, "Second system, for a paired significance test");
  command->add_option("--reference-column", a->column, "Column of REF that holds the references");
  command->add_option("--tokenize", a->tokenizer, "BLEU tokenizer: 13a, none, char");
  command->add_flag("--lowercase", a->lowercase, "BLEU without case");
  command->callback([a] { score(*a); });
}

}  // namespace tactus
