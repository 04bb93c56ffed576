#include "data/item.h"

#include <cstdio>

#include "core/error.h"

namespace tactus {

std::string MediaRef::to_string() const {
  std::string text = path;
  if (offset >= 0) text += ":" + std::to_string(offset) + (bytes >= 0 ? ":" + std::to_string(bytes) : "");
  if (!dataset.empty()) text += ":" + dataset;
  if (start_seconds > 0 || duration_seconds >= 0) {
    char part[64];
    std::snprintf(part, sizeof part, ":%g+%gs", start_seconds, duration_seconds);
    text += part;
  }
  return text;
}

void count_drop(DropCounts& drops, const std::string& reason, const std::string& id, const std::string& message) {
  DropCount& drop = drops[reason];
  if (drop.count++ == 0) drop.first = message;
  if (drop.ids.size() < kNamedIds) drop.ids.push_back(id);
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
