#include "data/item.h"

#include <cstdio>

#include "core/error.h"

namespace tactus {
namespace {

constexpr size_t kNamedIdBytes = 200;

}  // namespace

std::string MediaRef::to_string() const {
  std::string text = path;
  if (offset >= 0) text += ":" + std::to_string(offset) + (bytes >= 0 ? ":" + std::to_string(bytes) : "");
  if (!dataset.empty()) text += ":" + dataset;
  if (start_seconds > 0 || duration_seconds >= 0) {
    char part[64];
    std::snprintf(part, sizeof part, duration_seconds >= 0 ? ":%g+%gs" : ":%gs to the end", start_seconds,
                  duration_seconds);
    text += part;
  }
  return text;
}

std::string MediaRef::encode() const {
  char numbers[160];
  // Hexadecimal digits give back exactly the same seconds.
  std::snprintf(numbers, sizeof numbers, "%d\t%lld\t%lld\t%a\t%a\t%a\t", static_cast<int>(kind),
                static_cast<long long>(offset), static_cast<long long>(bytes), start_seconds, duration_seconds, speed);
  return numbers + dataset + "\t" + path;
}

MediaRef MediaRef::decode(std::string_view line) {
  MediaRef m;
  int kind = -1, read = 0;
  long long offset = 0, bytes = 0;
  const std::string text(line);
  const int fields = std::sscanf(text.c_str(), "%d\t%lld\t%lld\t%la\t%la\t%la%n", &kind, &offset, &bytes,
                                 &m.start_seconds, &m.duration_seconds, &m.speed, &read);
  const size_t at = static_cast<size_t>(read);
  const size_t tab = fields == 6 && text.size() > at && text[at] == '\t' ? text.find('\t', at + 1) : std::string::npos;
  if (tab == std::string::npos || kind < 0 || kind > static_cast<int>(Kind::hdf5))
    throw DataError("'" + text.substr(0, 80) + "' is no reference to audio; the corpus is damaged, prepare it again");
  m.kind = static_cast<Kind>(kind), m.offset = offset, m.bytes = bytes;
  m.dataset = text.substr(at + 1, tab - at - 1), m.path = text.substr(tab + 1);
  return m;
}

void count_drop(DropCounts& drops, const std::string& reason, const std::string& id, const std::string& message) {
  DropCount& drop = drops[reason];
  if (drop.count++ == 0) drop.first = message;
  if (drop.ids.size() < kNamedIds) drop.ids.push_back(id.substr(0, kNamedIdBytes));
}

void merge_drops(DropCounts& into, const DropCounts& from) {
  for (const auto& [reason, drop] : from) {
    DropCount& sum = into[reason];
    if (sum.count == 0) sum.first = drop.first;
    sum.count += drop.count;
    for (const std::string& id : drop.ids) {
      if (sum.ids.size() < kNamedIds) sum.ids.push_back(id);
    }
  }
}

int64_t total(const DropCounts& drops) {
  int64_t count = 0;
  for (const auto& [reason, drop] : drops) count += drop.count;
  return count;
}

std::string to_string(const DropCounts& drops) {
  std::string text;
  for (const auto& [reason, drop] : drops) {
    text += (text.empty() ? "" : ", ") + std::to_string(drop.count) + " " + reason + " (";
    for (const std::string& id : drop.ids) text += (&id == &drop.ids.front() ? "" : ", ") + id;
    if (drop.count > static_cast<int64_t>(drop.ids.size())) text += ", ...";
    if (!drop.first.empty()) text += "; first: " + drop.first;
    text += ")";
  }
  return text.empty() ? "none" : text;
}

OnError on_error_from_string(const std::string& name) {
  if (name == "stop") return OnError::stop;
  if (name == "skip") return OnError::skip;
  throw ConfigError("on_error is '" + name + "', expected stop or skip");
}

}  // namespace tactus
