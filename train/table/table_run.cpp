#include "train/table/table_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/files/files.h"
#include "core/files/json.h"
#include "core/process/log.h"
#include "core/process/signals.h"
#include "train/checkpoint/average.h"
#include "train/loop/trainer.h"
#include "train/metrics/metric.h"
#include "train/predict/decoder_run.h"
#include "train/report/text_baseline.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr double kMebi = 1 << 20;

struct RowRun {
  std::string name, folder;
  TableRowOptions options;
  RunOptions run;
};

std::vector<std::string> texts(const CorpusSplit& split, std::string_view (CorpusSplit::*get)(int64_t) const) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < split.size(); ++i) out.emplace_back((split.*get)(i));
  return out;
}

double bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  return compute_metric("bleu", hypotheses, references).value;
}

/// BLEU of the whole split and of each of its subsets, as "bleu" and "bleu_SUBSET".
void add_bleu(const CorpusSplit& split, const std::vector<std::string>& hypotheses, TableRow& row) {
  const std::vector<std::string> references = texts(split, &CorpusSplit::tgt_text);
  row.values["bleu"] = bleu(hypotheses, references);
  std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> parts;
  for (int64_t i = 0; i < split.size(); ++i) {
    if (split.subset(i).empty()) continue;
    auto& part = parts[std::string(split.subset(i))];
    part.first.push_back(hypotheses[static_cast<size_t>(i)]);
    part.second.push_back(references[static_cast<size_t>(i)]);
  }
  if (parts.size() < 2) return;
  for (const auto& [name, part] : parts) row.values["bleu_" + name] = bleu(part.first, part.second);
}

void add_costs(const LoadedModel& model, const TrainResult& trained, const DecodeReport& decoded, TableRow& row) {
  row.values["train_seconds"] = trained.seconds;
  row.values["train_frames_per_second"] = trained.frames_per_second;
  row.values["decode_seconds"] = decoded.seconds;
  // Slots round up, so the rate is taken from a length that every stride divides.
  constexpr int64_t kLength = 27720;
  const double elements =
      static_cast<double>(model.task->model().decoder().attention().cost(kLength).cache_elements) / kLength;
  row.values["cache_elements"] = elements;
  row.values["cache_bytes"] = elements * static_cast<double>(size_of(model.task->compute_type()));
  row.values["parameters"] = static_cast<double>(model.task->store().count());
  row.values["decode_cache_mib"] = static_cast<double>(decoded.cache.payload) / kMebi;
  row.values["decode_cache_unshared_mib"] = static_cast<double>(decoded.cache.payload_unshared) / kMebi;
  row.values["decode_peak_mib"] = static_cast<double>(decoded.memory.total_peak) / kMebi;
  row.values["train_peak_mib"] = static_cast<double>(trained.memory.total_peak) / kMebi;
  for (int i = 0; i < kMemoryTags; ++i) {
    row.values["train_peak_mib_" + to_string(static_cast<MemoryTag>(i))] =
        static_cast<double>(trained.memory.peak[i]) / kMebi;
    row.values["decode_peak_mib_" + to_string(static_cast<MemoryTag>(i))] =
        static_cast<double>(decoded.memory.peak[i]) / kMebi;
  }
}

std::string result_json(const std::string& key, const TableRow& row) {
  JsonWriter json;
  json.begin_object().field("key", key).field("name", row.name).key("values").begin_object();
  for (const auto& [name, value] : row.values) json.field(name, value);
  return json.end_object().end_object().str() + "\n";
}

/// The stored result of a row, when it belongs to `key`.
bool stored_result(const RowRun& r, const std::string& key, TableRow& row) {
  const std::string path = r.folder + "/result.json";
  if (!fs::exists(path) || !fs::exists(r.folder + "/decode/test.tsv")) return false;
  const Json json = parse_json(read_text_file(path), path);
  if (json.at("key").as_string() != key) return false;
  for (const auto& [name, value] : json.at("values").members()) row.values[name] = value.as_double();
  return true;
}

TableRow run_row(const TableOptions& table, const RowRun& r, Corpus& corpus, const CorpusSplit& test) {
  TableRow row{r.name, {}};
  const std::string key = text_hash(dump_yaml(r.run) + corpus.feature_hash() + corpus.target_tokenizer().hash() +
                                    TrainData::open(r.run.data, static_cast<uint64_t>(r.run.seed)).plan.fingerprint() +
                                    test.fingerprint() + table.average + std::to_string(table.average_count));
  if (stored_result(r, key, row)) {
    note(r.name + ": done before, in " + r.folder);
    return row;
  }
  note(r.name + ": training in " + r.folder);
  ResumeOptions resume;
  resume.same_config = true;
  Trainer trainer(r.run, r.folder, resume);
  const TrainResult trained = trainer.run();
  if (trained.stopped)
    throw Error(r.name + ": stopped by a signal after update " + std::to_string(trained.updates) +
                "; run the table again to go on");
  average_checkpoints(r.folder, table.average == "best" ? AverageChoice::best : AverageChoice::last,
                      table.average_count, r.folder + "/average.h5");
  LoadedModel model = load_model(r.folder + "/average.h5", r.run.device, r.run.threads);
  const DecodeReport decoded = decode_split(model, corpus, table.test);
  std::vector<std::string> hypotheses;
  for (const DecodedLine& line : decoded.lines) hypotheses.push_back(line.hypothesis);
  fs::create_directories(r.folder + "/decode");
  write_decoded(r.folder + "/decode/test.tsv", decoded);
  add_bleu(test, hypotheses, row);
  add_costs(model, trained, decoded, row);
  write_text_atomic(r.folder + "/result.json", result_json(key, row));
  return row;
}

TableRow baseline_row(Corpus& corpus, const CorpusSplit& test, const std::string& train_name) {
  const auto train = corpus.split(train_name);
  std::vector<std::string_view> source, target, queries;
  for (int64_t i = 0; i < train->size(); ++i)
    source.push_back(train->src_text(i)), target.push_back(train->tgt_text(i));
  for (int64_t i = 0; i < test.size(); ++i) queries.push_back(test.src_text(i));
  TableRow row{"nearest text", {}};
  add_bleu(test, nearest_neighbour_translations(source, target, queries), row);
  return row;
}

/// A few test sentences: reference and each row's output.
std::string samples(const TableOptions& table, const std::vector<RowRun>& runs, const CorpusSplit& test) {
  std::string out;
  const int64_t n = std::min(table.samples, test.size());
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = k * test.size() / n;
    out += "\n" + std::string(test.id(i)) + (test.src_text(i).empty() ? "" : "  " + std::string(test.src_text(i))) +
           "\n  reference: " + std::string(test.tgt_text(i)) + "\n";
    for (const RowRun& r : runs) {
      const std::string text = read_text_file(r.folder + "/decode/test.tsv");
      const std::string wanted = "\n" + std::string(test.id(i)) + "\t";
      const size_t begin = text.find(wanted);
      if (begin == std::string::npos) continue;
      const size_t from = begin + wanted.size(), to = text.find('\t', from);
      out += "  " + r.name + ": " + text.substr(from, to - from) + "\n";
    }
  }
  return out;
}

std::vector<TableColumn> columns_of(const std::vector<TableRow>& rows) {
  std::vector<TableColumn> columns = {{"bleu", "BLEU", 2, false}};
  std::set<std::string> subsets;
  bool paper = false;
  for (const TableRow& row : rows) {
    for (const auto& [key, value] : row.values) {
      if (key.rfind("bleu_", 0) == 0) subsets.insert(key);
      paper |= key == "paper_bleu" && value > 0;
    }
  }
  for (const std::string& key : subsets) columns.push_back({key, key.substr(5), 2, false});
  columns.push_back({"train_seconds", "train s", 1, false});
  columns.push_back({"decode_seconds", "decode s", 2, true});
  columns.push_back({"cache_bytes", "cache B/pos/layer", 0, true});
  columns.push_back({"decode_cache_mib", "cache MiB", 2, true});
  columns.push_back({"decode_peak_mib", "decode peak MiB", 1, false});
  columns.push_back({"train_peak_mib", "train peak MiB", 1, false});
  if (paper) {
    columns.push_back({"paper_bleu", "paper BLEU", 2, false});
    columns.push_back({"paper_seconds", "paper s", 1, true});
    columns.push_back({"paper_mib", "paper MiB", 0, true});
  }
  return columns;
}

/// Peak memory by purpose, training and decoding, a row each.
Table memory_table(const std::vector<TableRow>& rows) {
  Table t;
  t.title = "Peak memory by purpose (MiB): training / decoding";
  for (const char* phase : {"train", "decode"}) {
    for (int i = 0; i < kMemoryTags; ++i) {
      const std::string tag = to_string(static_cast<MemoryTag>(i)), key = std::string(phase) + "_peak_mib_" + tag;
      const bool any = std::any_of(rows.begin(), rows.end(),
                                   [&](const TableRow& r) { return r.values.count(key) && r.values.at(key) > 0; });
      if (any) t.columns.push_back({key, std::string(phase) + " " + tag, 1, false});
    }
  }
  for (const TableRow& r : rows) {
    if (r.values.count("train_peak_mib")) t.rows.push_back(r);
  }
  return t;
}

std::vector<RowRun> rows_to_run(const TableOptions& table, const TableRequest& request) {
  std::vector<RowRun> runs;
  const fs::path base = fs::path(request.file).parent_path();
  for (const auto& [name, options] : table.rows) {
    if (!request.only.empty() && std::find(request.only.begin(), request.only.end(), name) == request.only.end())
      continue;
    RowRun r{name, table.run + "/" + name, options, {}};
    std::vector<std::string> settings = options.set;
    settings.insert(settings.end(), request.overrides.begin(), request.overrides.end());
    if (!request.device.empty()) settings.push_back("device=" + request.device);
    Config::load((base / options.config).string(), settings).read(r.run);
    runs.push_back(std::move(r));
  }
  for (const std::string& name : request.only) {
    const bool known =
        std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row.first == name; });
    if (!known) throw ConfigError(request.file + ": has no row '" + name + "'");
  }
  if (runs.empty()) throw ConfigError(request.file + ": has no rows");
  return runs;
}

}  // namespace

void TableRowOptions::visit(ConfigVisitor& v) {
  v.field("config", config, {.doc = "Training configuration, relative to the table's file", .required = true});
  v.field("set", set, {.doc = "Settings (key=value) on top of the configuration"});
  v.field("paper_bleu", paper_bleu, {.doc = "Published BLEU, 0: none", .min = 0});
  v.field("paper_seconds", paper_seconds, {.doc = "Published decoding time, 0: none", .unit = "seconds", .min = 0});
  v.field("paper_mebibytes", paper_mebibytes, {.doc = "Published decoding memory, 0: none", .unit = "MiB", .min = 0});
}

void TableOptions::visit(ConfigVisitor& v) {
  v.field("title", title, {.doc = "Heading of the table"});
  v.field("run", run, {.doc = "Folder of the runs", .required = true});
  v.field("test", test, {.doc = "Split to decode and score"});
  v.field("average", average, {.doc = "Which checkpoints are averaged", .choices = {"best", "last"}});
  v.field("average_count", average_count, {.doc = "How many checkpoints are averaged", .min = 1});
  v.field("samples", samples, {.doc = "Test sentences to print", .min = 0});
  v.sections("rows", rows, "The rows by name");
}

std::string run_table(const TableRequest& request) {
  TableOptions options;
  Config::load(request.file).read(options);
  const std::vector<RowRun> runs = rows_to_run(options, request);
  Corpus corpus = Corpus::open(runs.front().run.data.corpus);
  const auto test = corpus.split(options.test);
  Table table;
  table.title = options.title;
  for (const RowRun& r : runs) {
    if (r.run.data.corpus != runs.front().run.data.corpus)
      throw ConfigError(request.file + ": rows use different corpora");
    TableRow row = run_row(options, r, corpus, *test);
    if (r.options.paper_bleu > 0) row.values["paper_bleu"] = r.options.paper_bleu;
    if (r.options.paper_seconds > 0) row.values["paper_seconds"] = r.options.paper_seconds;
    if (r.options.paper_mebibytes > 0) row.values["paper_mib"] = r.options.paper_mebibytes;
    table.rows.push_back(std::move(row));
  }
  if (test->has_src_text()) table.rows.push_back(baseline_row(corpus, *test, runs.front().run.data.train));
  table.columns = columns_of(table.rows);
  table.note =
      "(x): times smaller than in the first row. cache MiB: slots in use at the fullest moment of the largest batch, "
      "the prompt's "
      "shared by the hypotheses of an utterance. nearest text: copies the target text of the most similar training "
      "text.";
  const Table memory = memory_table(table.rows);
  const std::string examples = samples(options, runs, *test);
  write_text_atomic(options.run + "/table.md",
                    table.to_markdown() + "\n" + memory.to_markdown() + "\n```" + examples + "```\n");
  write_text_atomic(options.run + "/table.html", table.to_html());
  write_text_atomic(options.run + "/table.json", table.to_json());
  return table.to_text() + "\n" + memory.to_text() + examples;
}

}  // namespace tactus
