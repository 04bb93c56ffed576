#include "train/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/files/files.h"
#include "core/files/json.h"
#include "core/process/log.h"
#include "train/checkpoint/state_file.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
constexpr const char* kTemporary = ".writing-";
constexpr const char* kRetired = ".retired-";
constexpr const char* kFormat = "tactus checkpoint";
constexpr int64_t kVersion = 1;

/// FNV-1a over 8-byte words (the last one padded): a whole model in well under a second.
std::string checksum(const std::string& path) {
  const FileDescriptor file = FileDescriptor::open_for_reading(path);
  const int64_t size = static_cast<int64_t>(fs::file_size(path));
  std::vector<uint64_t> buffer(1 << 17);
  uint64_t h = 0xcbf29ce484222325ull;
  const int64_t step = static_cast<int64_t>(buffer.size() * sizeof(uint64_t));
  for (int64_t at = 0; at < size; at += step) {
    const int64_t n = std::min(step, size - at);
    buffer[static_cast<size_t>((n - 1) / 8)] = 0;
    read_exactly(file.get(), buffer.data(), n, at, path);
    for (int64_t i = 0; i < (n + 7) / 8; ++i) {
      h = (h ^ buffer[static_cast<size_t>(i)]) * 0x100000001b3ull;
      h ^= h >> 32;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
  return text;
}

void flush_to_disk(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  const bool ok = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!ok) throw Error(path + ": cannot be flushed to disk: " + std::strerror(error));
}

void write_manifest(const std::string& folder, const std::vector<std::string>& files) {
  JsonWriter json;
  json.begin_object().field("format", kFormat).field("version", kVersion).key("files").begin_array();
  for (const std::string& name : files) {
    const std::string path = folder + "/" + name;
    flush_to_disk(path);
    json.begin_object().field("name", name).field("bytes", static_cast<int64_t>(fs::file_size(path)));
    json.field("checksum", checksum(path)).end_object();
  }
  write_text_atomic(folder + "/manifest.json", json.end_array().end_object().str() + "\n");
}

int64_t update_of(const fs::path& p) {
  const std::string name = p.filename().string();
  if (!name.starts_with("step-")) return -1;
  int64_t update = -1;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 5, end, update);
  // Another spelling of the same number would be another folder.
  return error == std::errc() && stop == end && name == "step-" + std::to_string(update) ? update : -1;
}

/// The files that a manifest lists, none of them outside its folder.
const std::vector<Json>& listed_files(const Json& manifest, const std::string& path) {
  if (manifest.at("format").as_string() != kFormat) throw DataError(path + ": not the manifest of a checkpoint");
  if (const int64_t version = manifest.at("version").as_int(); version != kVersion) {
    throw DataError(path + ": checkpoint of version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(kVersion));
  }
  const std::vector<Json>& files = manifest.at("files").items();
  bool model = false;
  for (const Json& f : files) {
    const std::string& name = f.at("name").as_string();
    if (name != "model.h5" && name != "state.h5")
      throw DataError(path + ": lists '" + name + "', expected model.h5 and state.h5");
    model |= name == "model.h5";
  }
  if (!model) throw DataError(path + ": does not list model.h5");
  return files;
}

}  // namespace

std::string verify_checkpoint(const std::string& folder, bool with_state) {
  try {
    const std::string manifest = folder + "/manifest.json";
    if (!fs::exists(manifest)) return folder + ": has no manifest";
    const Json json = parse_json(read_text_file(manifest), manifest);
    bool state = false;
    for (const Json& f : listed_files(json, manifest)) {
      const std::string path = folder + "/" + f.at("name").as_string();
      state |= f.at("name").as_string() == "state.h5";
      if (!fs::exists(path)) return path + ": is missing";
      const int64_t size = static_cast<int64_t>(fs::file_size(path));
      if (size != f.at("bytes").as_int()) {
        return path + ": has " + std::to_string(size) + " bytes, the manifest says " +
               std::to_string(f.at("bytes").as_int());
      }
      if (checksum(path) != f.at("checksum").as_string()) return path + ": its checksum differs from the manifest's";
    }
    if (with_state && !state) return folder + ": holds no training state";
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

TrainState load_checkpoint(const std::string& folder, ParameterStore& store, const Optimiser& optimiser) {
  const std::string problem = verify_checkpoint(folder, true);
  if (!problem.empty()) throw DataError(problem);
  read_model_weights(folder + "/model.h5", store);
  return read_state_file(folder + "/state.h5", store, optimiser);
}

void CheckpointFolder::recover() const {
  if (!fs::exists(folder_)) return;
  std::vector<fs::path> retired;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(kTemporary, 0) == 0) fs::remove_all(entry.path());
    if (name.rfind(kRetired, 0) == 0) retired.push_back(entry.path());
  }
  // Killed between the two renames of a replacement: the old one is still whole.
  for (const fs::path& p : retired) {
    const fs::path original = fs::path(folder_) / p.filename().string().substr(std::strlen(kRetired));
    if (fs::exists(original))
      fs::remove_all(p);
    else
      fs::rename(p, original);
  }
}

std::string CheckpointFolder::path(int64_t update) const { return folder_ + "/step-" + std::to_string(update); }

std::vector<int64_t> CheckpointFolder::updates() const {
  std::vector<int64_t> out;
  if (!fs::exists(folder_)) return out;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (int64_t u = update_of(entry.path()); u >= 0) out.push_back(u);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void CheckpointFolder::save(const TrainState& state, const ModelInfo& info, ParameterStore& store,
                            const Optimiser& optimiser) {
  const std::string name = "step-" + std::to_string(state.update);
  const std::string temporary = folder_ + "/" + kTemporary + name, final = path(state.update);
  try {
    fs::create_directories(temporary);
    write_model_file(temporary + "/model.h5", info, store);
    write_state_file(temporary + "/state.h5", state, store, optimiser);
    write_manifest(temporary, {"model.h5", "state.h5"});
    flush_to_disk(temporary);
    if (fs::exists(final)) {
      fs::rename(final, folder_ + "/" + kRetired + name);
      fs::rename(temporary, final);
      fs::remove_all(folder_ + "/" + kRetired + name);
    } else {
      fs::rename(temporary, final);
    }
    flush_to_disk(folder_);
  } catch (const std::exception& e) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw Error("checkpoint of update " + std::to_string(state.update) +
                " could not be written; earlier ones are untouched: " + e.what());
  }
}

std::optional<int64_t> CheckpointFolder::newest() const {
  std::vector<int64_t> all = updates();
  for (auto u = all.rbegin(); u != all.rend(); ++u) {
    if (!fs::exists(path(*u) + "/state.h5") && verify_checkpoint(path(*u), false).empty())
      continue;  // kept for its weights alone
    const std::string problem = verify_checkpoint(path(*u), true);
    if (problem.empty()) return *u;
    warn("checkpoint ignored: " + problem);
  }
  return std::nullopt;
}

void CheckpointFolder::prune(const TrainState& state, int64_t last) const {
  std::vector<int64_t> all = updates();
  std::erase_if(all, [&](int64_t u) { return u > state.update; });
  std::set<int64_t> scored;
  for (const ScoredCheckpoint& b : state.best) scored.insert(b.update);
  const size_t first_kept = all.size() - std::min<size_t>(all.size(), static_cast<size_t>(last));
  for (size_t i = 0; i < first_kept; ++i) {
    if (!scored.count(all[i])) {
      fs::remove_all(path(all[i]));
    } else if (fs::exists(path(all[i]) + "/state.h5")) {
      // The manifest goes first to a form without the state: a kill in between leaves a checkpoint that verifies.
      write_manifest(path(all[i]), {"model.h5"});
      fs::remove(path(all[i]) + "/state.h5");
    }
  }
}

std::string find_model(const std::string& path) {
  if (!fs::exists(path)) throw DataError(path + ": no such run, checkpoint or model file");
  if (!fs::is_directory(path)) return path;
  std::string folder = path;
  if (!fs::exists(path + "/manifest.json")) {
    if (fs::exists(path + "/average.h5")) return path + "/average.h5";
    const CheckpointFolder checkpoints(path);
    const std::vector<int64_t> all = checkpoints.updates();
    if (all.empty()) throw DataError(path + ": holds no checkpoint");
    int64_t chosen = all.back();
    if (auto newest = checkpoints.newest()) {
      const TrainState state = read_state_counters(checkpoints.path(*newest) + "/state.h5");
      chosen = state.best.empty() ? *newest : state.best.front().update;
    }
    folder = checkpoints.path(chosen);
  }
  const std::string problem = verify_checkpoint(folder, false);
  if (!problem.empty()) throw DataError(problem);
  return folder + "/model.h5";
}

}  // namespace tactus
