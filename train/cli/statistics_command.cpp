// tactus statistics.
#include <iostream>
#include <memory>

#include "data/batches/normalise.h"
#include "train/cli/commands.h"

namespace tactus {

void add_statistics_command(CLI::App& app) {
  struct Arguments {
    std::string corpus, split = "train", out;
  };
  CLI::App* command =
      app.add_subcommand("statistics", "Write the feature statistics of a split, for data.cmvn: global");
  auto a = std::make_shared<Arguments>();
  command->add_option("CORPUS", a->corpus, "Corpus file")->required();
  command->add_option("--split", a->split, "Split; default train");
  command->add_option("--out", a->out, "Statistics file to write")->required();
  command->callback([a] {
    Corpus corpus = Corpus::open(a->corpus);
    const auto split = corpus.split(a->split);
    if (!split->has_frames()) throw DataError(a->corpus + ": split " + a->split + " has no frames");
    const Normaliser normaliser = Normaliser::global(split->moments(), a->corpus);
    write_statistics(a->out, corpus.feature_hash(), split->moments());
    std::cout << a->out << ": " << split->moments().frames << " frames of " << split->bins() << " numbers, "
              << normaliser.floored().size() << " without variance\n";
  });
}

}  // namespace tactus
