// Tables of results: rows of named values, printed as text, Markdown, HTML and JSON. Knows nothing of how rows come
// about.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tactus {

struct TableColumn {
  std::string key, title;
  int decimals = 2;
  bool relative = false;  ///< also print the ratio to the first row
};

struct TableRow {
  std::string name;
  std::map<std::string, double> values;  ///< by column key; missing ones print as "-"
};

struct Table {
  std::string title, note;
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;

  std::string to_text() const;
  std::string to_markdown() const;
  std::string to_html() const;  ///< one self-contained page
  std::string to_json() const;
};

}  // namespace tactus
