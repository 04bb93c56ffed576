#include "data/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <unordered_map>

#include "core/error.h"
#include "data/text_lines.h"

namespace tactus {
namespace {

enum Column { kId, kAudio, kFrames, kTarget, kSource, kSpeaker, kSubset, kColumns };
constexpr int kRequired = 4;
const std::array<std::string, kColumns> kNames = {"id",       "audio",   "n_frames", "tgt_text",
                                                  "src_text", "speaker", "subset"};

/// Where each known column stands in the file (-1: absent), and where the others stand.
struct Header {
  std::array<int, kColumns> known;
  std::vector<int> extra;
  size_t fields = 0;
};

Header read_header(LineReader& reader, Manifest& manifest) {
  std::string line;
  if (!reader.next(line)) throw DataError(manifest.path + ": empty file; expected a header line with the column names");
  Header header;
  header.known.fill(-1);
  std::vector<std::string> seen;
  for (std::string_view field : split_tabs(line)) {
    std::string name(field);
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      throw DataError(reader.where() + ": column '" + name + "' appears twice");
    int at = static_cast<int>(seen.size());
    seen.push_back(name);
    auto known = std::find(kNames.begin(), kNames.end(), name);
    if (known != kNames.end()) {
      header.known[known - kNames.begin()] = at;
    } else {
      header.extra.push_back(at);
      manifest.extra_columns.push_back(name);
    }
  }
  header.fields = seen.size();
  for (int c = 0; c < kRequired; ++c) {
    if (header.known[c] >= 0) continue;
    std::string found;
    for (const std::string& name : seen) found += (found.empty() ? "" : ", ") + name;
    throw DataError(reader.where() + ": column '" + kNames[c] + "' is missing; the header has: " + found);
  }
  manifest.has_src_text = header.known[kSource] >= 0;
  return header;
}

/// Fills `row` from the fields; returns the reason for which the row is unusable, or "". `message` says it in words.
std::string parse_row(const Header& header, const std::vector<std::string_view>& fields, ManifestRow& row,
                      std::string& message) {
  if (fields.size() != header.fields) {
    message = std::to_string(fields.size()) + " fields, the header has " + std::to_string(header.fields);
    return "wrong_field_count";
  }
  auto text = [&](Column c) { return header.known[c] < 0 ? std::string() : std::string(fields[header.known[c]]); };
  row.id = text(kId), row.audio = text(kAudio), row.tgt_text = text(kTarget), row.src_text = text(kSource);
  row.speaker = text(kSpeaker), row.subset = text(kSubset);
  for (int at : header.extra) row.extra.emplace_back(fields[at]);
  if (is_blank(row.id)) {
    message = "empty id";
    return "empty_id";
  }
  std::string_view number = fields[header.known[kFrames]];
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), row.n_frames);
  if (error != std::errc() || end != number.data() + number.size() || row.n_frames < 0) {
    message = "n_frames is '" + std::string(number) + "', expected a whole number of 10 ms frames";
    return "bad_n_frames";
  }
  if (is_blank(row.audio)) {
    message = "empty audio path";
    return "empty_audio";
  }
  return "";
}

}  // namespace

std::string Manifest::where(const ManifestRow& row) const {
  return path + ":" + std::to_string(row.line) + " (id " + row.id + ")";
}

std::string Manifest::audio_path(const ManifestRow& row) const {
  return (std::filesystem::path(path).parent_path() / row.audio).string();
}

Manifest read_manifest(const std::string& path, OnError on_error) {
  Manifest manifest;
  manifest.path = path;
  LineReader reader(path);
  Header header = read_header(reader, manifest);
  std::unordered_map<std::string, int64_t> line_of_id;
  for (std::string line; reader.next(line);) {
    ManifestRow row;
    row.line = reader.number();
    std::string message;
    std::string reason = parse_row(header, split_tabs(line), row, message);
    if (!reason.empty()) {
      message = (row.id.empty() ? reader.where() : manifest.where(row)) + ": " + message;
      if (on_error == OnError::stop) throw DataError(message);
      count_drop(manifest.dropped, reason, row.id, message);
      continue;
    }
    auto [other, fresh] = line_of_id.emplace(row.id, row.line);
    if (!fresh)
      throw DataError(manifest.where(row) + ": id was used in line " + std::to_string(other->second) + " already");
    manifest.rows.push_back(std::move(row));
  }
  return manifest;
}

}  // namespace tactus
