#include "data/input/media_path.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/files/files.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

bool parse_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

/// Splits "PATH.EXT:REST"; false where there is no such extension before a colon.
bool split_after(const std::string& text, const std::string& extension, std::string& path, std::string& rest) {
  const size_t at = text.find(extension + ":");
  if (at == std::string::npos) return false;
  path = text.substr(0, at + extension.size());
  rest = text.substr(at + extension.size() + 1);
  return true;
}

MediaRef::Kind kind_at(const std::string& path, int64_t offset) {
  const FileDescriptor file = FileDescriptor::open_for_reading(path);
  char head[6] = {};
  read_exactly(file.get(), head, sizeof head, offset, path);
  return std::memcmp(head, "\x93NUMPY", 6) == 0 ? MediaRef::Kind::npy : MediaRef::Kind::audio;
}

}  // namespace

std::string MediaPaths::resolve(const std::string& path) const { return (fs::path(root_) / path).string(); }

MediaRef MediaPaths::parse(const std::string& text) {
  MediaRef m;
  std::string path, rest;
  if (split_after(text, ".zip", path, rest)) {
    const size_t colon = rest.find(':');
    if (colon == std::string::npos || !parse_number(std::string_view(rest).substr(0, colon), m.offset) ||
        !parse_number(std::string_view(rest).substr(colon + 1), m.bytes))
      throw DataError("audio is '" + text + "', expected FILE.zip:OFFSET:BYTES");
    m.path = resolve(path);
    auto found = kind_in_zip_.find(m.path);
    if (found == kind_in_zip_.end()) found = kind_in_zip_.emplace(m.path, kind_at(m.path, m.offset)).first;
    m.kind = found->second;
    return m;
  }
  if (split_after(text, ".ark", path, rest)) {
    if (!parse_number(rest, m.offset)) throw DataError("audio is '" + text + "', expected FILE.ark:OFFSET");
    m.kind = MediaRef::Kind::ark, m.path = resolve(path);
    return m;
  }
  for (const char* extension : {".h5", ".hdf5"}) {
    if (!split_after(text, extension, path, rest) || rest.empty()) continue;
    m.kind = MediaRef::Kind::hdf5, m.path = resolve(path), m.dataset = rest;
    return m;
  }
  m.path = resolve(text);
  m.kind = text.ends_with(".npy") ? MediaRef::Kind::npy : MediaRef::Kind::audio;
  return m;
}

double parse_seconds(std::string_view text, const char* name) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    throw DataError(std::string(name) + " is '" + std::string(text) + "', expected seconds from 0 on");
  return value;
}

}  // namespace tactus
