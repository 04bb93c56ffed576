#include "data/prepare/progress.h"

#include <algorithm>
#include <cstdio>

namespace tactus {
namespace {

constexpr int64_t kBarColumns = 24;

std::string duration_text(double seconds) {
  char text[48];
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 60) std::snprintf(text, sizeof text, "%lld s", whole);
  if (whole >= 60 && whole < 3600) std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  if (whole >= 3600) std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  return text;
}

}  // namespace

std::string progress_text(int64_t done, int64_t total, double seconds, const std::string& unit) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  char speed[48];
  std::snprintf(speed, sizeof speed, rate < 10 ? "%.1f/s" : "%.0f/s", rate);
  if (total <= 0 || done > total) return std::to_string(done) + " " + unit + ", " + speed;
  const int64_t full = kBarColumns * done / total;
  std::string bar(static_cast<size_t>(full), '=');
  if (full < kBarColumns) bar += '>';
  bar.resize(static_cast<size_t>(kBarColumns), ' ');
  std::string text = "[" + bar + "] " + std::to_string(done) + "/" + std::to_string(total) + " " + unit + ", " + speed;
  if (done < total && rate > 0) text += ", " + duration_text(static_cast<double>(total - done) / rate) + " left";
  return text;
}

}  // namespace tactus
