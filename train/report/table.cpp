#include "train/report/table.h"

#include <algorithm>
#include <cstdio>

#include "core/files/json.h"

namespace tactus {
namespace {

using Cells = std::vector<std::vector<std::string>>;

std::string number(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string cell(const Table& table, const TableRow& row, const TableColumn& column) {
  const auto found = row.values.find(column.key);
  if (found == row.values.end()) return "-";
  std::string text = number(found->second, column.decimals);
  const auto& first = table.rows.front().values;
  const auto reference = first.find(column.key);
  if (column.relative && reference != first.end() && found->second > 0) {
    text += " (" + number(reference->second / found->second, 2) + "x)";
  }
  return text;
}

Cells cells_of(const Table& table) {
  Cells cells(1);
  cells[0].push_back("");
  for (const TableColumn& c : table.columns) cells[0].push_back(c.title);
  for (const TableRow& row : table.rows) {
    cells.push_back({row.name});
    for (const TableColumn& c : table.columns) cells.back().push_back(cell(table, row, c));
  }
  return cells;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string Table::to_text() const {
  const Cells cells = cells_of(*this);
  std::vector<size_t> width(columns.size() + 1, 0);
  for (const auto& row : cells) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out = title.empty() ? "" : title + "\n";
  for (const auto& row : cells) {
    std::string line = row[0] + std::string(width[0] - row[0].size(), ' ');
    for (size_t i = 1; i < row.size(); ++i) line += "  " + std::string(width[i] - row[i].size(), ' ') + row[i];
    out += line + "\n";
  }
  return out + (note.empty() ? "" : note + "\n");
}

std::string Table::to_markdown() const {
  const Cells cells = cells_of(*this);
  std::string out = "# " + title + "\n\n";
  for (size_t r = 0; r < cells.size(); ++r) {
    for (const std::string& c : cells[r]) out += "| " + c + " ";
    out += "|\n";
    if (r > 0) continue;
    for (size_t i = 0; i < cells[0].size(); ++i) out += i == 0 ? "|---" : "|---:";
    out += "|\n";
  }
  return out + (note.empty() ? "" : "\n" + note + "\n");
}

std::string Table::to_html() const {
  std::string out = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>" + escaped(title) +
                    "</title><style>body{font-family:sans-serif;margin:2em}td,th{padding:.3em .8em;text-align:right}"
                    "td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f2f2f2}</style><h1>" +
                    escaped(title) + "</h1><table>";
  const Cells cells = cells_of(*this);
  for (size_t r = 0; r < cells.size(); ++r) {
    const std::string tag = r == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& c : cells[r]) out += "<" + tag + ">" + escaped(c) + "</" + tag + ">";
    out += "</tr>";
  }
  return out + "</table><p>" + escaped(note) + "</p></html>\n";
}

std::string Table::to_json() const {
  JsonWriter json;
  json.begin_object().field("title", title).key("rows").begin_array();
  for (const TableRow& row : rows) {
    json.begin_object().field("name", row.name);
    for (const auto& [key, value] : row.values) json.field(key, value);
    json.end_object();
  }
  return json.end_array().end_object().str() + "\n";
}

}  // namespace tactus
