#include "train/loop/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/files/files.h"
#include "core/files/json.h"

namespace tactus {

namespace {

/// Whether a line was written before `state` was saved. A skipped update leaves `update` as it was, so such lines are
/// told apart by the count of attempts; a validation may follow a checkpoint of the same update.
bool precedes(const Json& line, const TrainState& state) {
  const int64_t update = line.at("update").as_int();
  const std::string& type = line.at("type").as_string();
  if (type == "skipped") return update + line.at("skipped").as_int() <= state.update + state.skipped;
  return update <= (type == "valid" ? state.validated_update : state.update);
}

}  // namespace

RunLog::RunLog(const std::string& path, const TrainState& state) : path_(path) {
  if (!std::filesystem::exists(path)) return;
  std::istringstream text(read_text_file(path));
  std::string kept, line;
  while (std::getline(text, line)) {
    try {
      if (!precedes(parse_json(line, path), state)) continue;
    } catch (const DataError&) {
      continue;  // the line that a kill cut short
    }
    kept += line + "\n";
  }
  write_text_atomic(path, kept);
}

void RunLog::append(const std::string& line) {
  const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw Error(path_ + ": cannot be written: " + std::strerror(errno));
  const FileDescriptor file(fd);
  const std::string bytes = line + "\n";
  write_exactly(fd, bytes.data(), bytes.size(), path_);
}

void RunLog::train_line(const TrainState& state, double rate, const Timing& timing) {
  const LogSums& s = state.sums;
  const double tokens = static_cast<double>(std::max<int64_t>(s.tokens, 1));
  JsonWriter json;
  json.begin_object().field("type", "train").field("update", state.update).field("epoch", state.epoch);
  json.field("loss", s.loss / tokens).field("nll", s.nll / tokens).field("accuracy", s.correct / tokens);
  if (s.ctc != 0) json.field("ctc", s.ctc / tokens);
  json.field("rate", rate).field("gradient_norm", s.norm / static_cast<double>(std::max<int64_t>(s.updates, 1)));
  json.field("tokens", s.tokens).field("frames", s.frames).field("skipped", state.skipped);
  if (s.ctc_infeasible > 0) json.field("ctc_infeasible", s.ctc_infeasible);
  json.key("timing")
      .begin_object()
      .field("seconds", timing.seconds)
      .field("frames_per_second", timing.frames_per_second);
  json.field("memory_peak_bytes", timing.memory_peak).end_object();
  append(json.end_object().str());
}

void RunLog::valid_line(const TrainState& state, double nll, double accuracy, double metric, bool best) {
  JsonWriter json;
  json.begin_object().field("type", "valid").field("update", state.update).field("epoch", state.epoch);
  json.field("nll", nll).field("accuracy", accuracy).field("metric", metric).field("best", best);
  append(json.end_object().str());
}

void RunLog::skipped_line(const TrainState& state, const std::string& what,
                          const std::vector<std::string>& utterances) {
  JsonWriter json;
  json.begin_object().field("type", "skipped").field("update", state.update).field("epoch", state.epoch);
  json.field("skipped", state.skipped).field("reason", what).field("utterances", utterances);
  append(json.end_object().str());
}

}  // namespace tactus
