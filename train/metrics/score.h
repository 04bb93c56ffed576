// Scores of files. Two layouts, told apart by the first line:
//  - a table: the first line is a header of tab-separated column names, one of them `id`, and has at least two columns;
//    rows are matched by id. Hypotheses are read from `hypothesis` (what decoding writes), references from `tgt_text`
//    (what manifests hold); other columns are ignored.
//  - plain text: one segment a line, matched by position.
// Both files must be of the same layout, so that lines are never matched by position with rows that have names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/metrics/bootstrap.h"
#include "train/metrics/metric.h"

namespace tactus {

struct ScoreOptions {
  MetricOptions metric;
  std::string hypothesis_column = "hypothesis";
  std::string reference_column = "tgt_text";
  int resamples = 1000;
  uint64_t seed = 12345;
};

struct ParallelText {
  std::vector<std::string> ids;  ///< empty for plain text
  std::vector<std::string> hypotheses;
  std::vector<std::string> references;
};

using Scores = std::vector<MetricScore>;

/// In the order of the reference file. DataError on: unreadable file, invalid UTF-8, no segments, different layouts,
/// different numbers of lines (both named), a missing column, a row with another number of fields than the header, an id
/// that is empty, repeated, without hypothesis or without reference (the first few named).
ParallelText read_parallel(const std::filesystem::path& hypotheses, const std::filesystem::path& references,
                           const ScoreOptions& options = {});

/// One score per metric name, in that order.
Scores score_files(const std::filesystem::path& hypotheses, const std::filesystem::path& references,
                   const std::vector<std::string>& metrics, const ScoreOptions& options = {});

/// Both systems against the same references, with a significance test per metric.
std::vector<PairedBootstrap> compare_files(const std::filesystem::path& hypotheses,
                                           const std::filesystem::path& against,
                                           const std::filesystem::path& references,
                                           const std::vector<std::string>& metrics, const ScoreOptions& options = {});

}  // namespace tactus
