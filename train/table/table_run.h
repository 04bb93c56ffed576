// `tactus table`: trains, averages, decodes and scores each row of a table that is not done yet, and prints ours beside
// published numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "train/report/table.h"

namespace tactus {

struct TableRowOptions {
  std::string config;            ///< training configuration, relative to the table's file
  std::vector<std::string> set;  ///< "key=value" on top
  double paper_bleu = 0, paper_seconds = 0, paper_mebibytes = 0;  ///< published numbers, 0: none
  void visit(ConfigVisitor& v);
};

struct TableOptions {
  std::string title;
  std::string run;  ///< folder of the runs; each row has one below it
  std::string test = "test";
  std::string average = "best";
  int64_t average_count = 5;
  int64_t samples = 5;
  std::vector<std::pair<std::string, TableRowOptions>> rows;
  void visit(ConfigVisitor& v);
};

struct TableRequest {
  std::string file;
  std::vector<std::string> only;       ///< row names; empty: all
  std::vector<std::string> overrides;  ///< applied to every row's configuration
  std::string device;
};

/// Writes table.md, table.html and table.json to the run folder and returns what to print. A row counts as done when
/// its result belongs to the same resolved configuration and corpus.
std::string run_table(const TableRequest& request);

}  // namespace tactus
