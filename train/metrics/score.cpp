#include "train/metrics/score.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "train/metrics/text.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct Column {
  std::vector<std::string> ids;
  std::vector<std::string> texts;
};

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> fields;
  for (size_t start = 0; start <= line.size();) {
    const size_t end = std::min(line.find('\t', start), line.size());
    fields.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return fields;
}

std::optional<size_t> index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<size_t>(it - names.begin());
}

bool is_table(const std::vector<std::string>& lines) {
  if (lines.empty()) return false;
  const auto header = split_tabs(lines.front());
  return header.size() > 1 && index_of(header, "id");
}

Column read_column(const fs::path& path, const std::vector<std::string>& lines, const std::string& name) {
  const auto header = split_tabs(lines.front());
  const auto text_at = index_of(header, name);
  if (!text_at) {
    std::string found;
    for (const auto& column : header) found += (found.empty() ? "" : ", ") + column;
    throw DataError(path.string() + ":1: no column '" + name + "'; found: " + found);
  }
  const size_t id_at = *index_of(header, "id");
  Column column;
  for (size_t i = 1; i < lines.size(); ++i) {
    auto fields = split_tabs(lines[i]);
    const std::string where = path.string() + ":" + std::to_string(i + 1);
    if (fields.size() != header.size()) {
      throw DataError(where + ": expected " + std::to_string(header.size()) + " tab-separated fields, got " +
                      std::to_string(fields.size()));
    }
    if (fields[id_at].empty()) throw DataError(where + ": empty id");
    column.texts.push_back(std::move(fields[*text_at]));
    column.ids.push_back(std::move(fields[id_at]));
  }
  return column;
}

std::unordered_map<std::string, size_t> index_ids(const fs::path& path, const std::vector<std::string>& ids) {
  std::unordered_map<std::string, size_t> rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [it, inserted] = rows.emplace(ids[i], i);
    if (!inserted) {
      throw DataError(path.string() + ":" + std::to_string(i + 2) + ": id '" + ids[i] + "' again (first on line " +
                      std::to_string(it->second + 2) + "); ids must be unique");
    }
  }
  return rows;
}

void require_ids(const fs::path& path, const std::unordered_map<std::string, size_t>& rows,
                 const std::vector<std::string>& wanted, const fs::path& wanted_by) {
  constexpr size_t kShown = 5;
  std::vector<std::string> missing;
  for (const auto& id : wanted) {
    if (!rows.contains(id)) missing.push_back(id);
  }
  if (missing.empty()) return;
  std::string names;
  for (size_t i = 0; i < std::min(kShown, missing.size()); ++i) names += (i ? ", " : "") + missing[i];
  if (missing.size() > kShown) names += ", ...";
  throw DataError(path.string() + ": " + std::to_string(missing.size()) + " of the " + std::to_string(wanted.size()) +
                  " ids in " + wanted_by.string() + " missing: " + names);
}

ParallelText match_ids(const fs::path& hyp_path, const Column& hyp, const fs::path& ref_path, const Column& ref) {
  const auto hyp_rows = index_ids(hyp_path, hyp.ids);
  require_ids(hyp_path, hyp_rows, ref.ids, ref_path);
  require_ids(ref_path, index_ids(ref_path, ref.ids), hyp.ids, hyp_path);
  ParallelText out;
  for (const auto& id : ref.ids) out.hypotheses.push_back(hyp.texts[hyp_rows.at(id)]);
  out.ids = ref.ids;
  out.references = ref.texts;
  return out;
}

}  // namespace

ParallelText read_parallel(const fs::path& hyp_path, const fs::path& ref_path, const ScoreOptions& options) {
  auto hyp_lines = text::read_lines(hyp_path);
  auto ref_lines = text::read_lines(ref_path);
  const bool hyp_table = is_table(hyp_lines), ref_table = is_table(ref_lines);
  if (hyp_table != ref_table) {
    throw DataError((hyp_table ? hyp_path : ref_path).string() + " is a table with ids but " +
                    (hyp_table ? ref_path : hyp_path).string() + " is plain text; give two tables or two plain files");
  }
  ParallelText out;
  if (hyp_table) {
    out = match_ids(hyp_path, read_column(hyp_path, hyp_lines, options.hypothesis_column), ref_path,
                    read_column(ref_path, ref_lines, options.reference_column));
  } else {
    if (hyp_lines.size() != ref_lines.size()) {
      throw DataError(hyp_path.string() + " has " + std::to_string(hyp_lines.size()) + " lines but " +
                      ref_path.string() + " has " + std::to_string(ref_lines.size()) + "; they must be equally many");
    }
    out.hypotheses = std::move(hyp_lines);
    out.references = std::move(ref_lines);
  }
  if (out.references.empty()) throw DataError(ref_path.string() + ": nothing to score, the file holds no segments");
  return out;
}

Scores score_files(const fs::path& hypotheses, const fs::path& references, const std::vector<std::string>& metrics,
                   const ScoreOptions& options) {
  for (const auto& name : metrics) find_metric(name);
  const ParallelText texts = read_parallel(hypotheses, references, options);
  Scores scores;
  for (const auto& name : metrics) {
    scores.push_back(compute_metric(name, texts.hypotheses, texts.references, options.metric));
  }
  return scores;
}

std::vector<PairedBootstrap> compare_files(const fs::path& hypotheses, const fs::path& against,
                                           const fs::path& references, const std::vector<std::string>& metrics,
                                           const ScoreOptions& options) {
  for (const auto& name : metrics) find_metric(name);
  const ParallelText ours = read_parallel(hypotheses, references, options);
  const ParallelText theirs = read_parallel(against, references, options);
  std::vector<PairedBootstrap> results;
  for (const auto& name : metrics) {
    results.push_back(paired_bootstrap(name, ours.hypotheses, theirs.hypotheses, ours.references, options.metric,
                                       options.resamples, options.seed));
  }
  return results;
}

}  // namespace tactus
