#include "tests/golden/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tactus::golden {
namespace {

double largest(const std::vector<double>& v) {
  double m = 0;
  for (double x : v) m = std::max(m, std::abs(x));
  return m;
}

/// Largest difference; infinite for other sizes and for NaN, which max() would swallow.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double m = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    if (!(d <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::infinity();
    m = std::max(m, d);
  }
  return m;
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", x);
  return text;
}

}  // namespace

Tolerances Tolerances::of(Device device, DType dtype) {
  if (dtype == DType::f64) return {1e-10, 1e-10, 1e-10, 0, 1e-10};
  if (dtype == DType::bf16) return {4e-2, 1e-4, 5e-2, 0.98, 0};
  const double values = device == Device::cuda ? 1e-4 : 2e-5;
  return {values, values, 1e-4, 0, 1e-5};
}

void Report::judge(Class& c, const std::string& name, double error, double tolerance) {
  ++c.arrays;
  c.worst = std::max(c.worst, error);
  if (!(error <= tolerance)) failures_.push_back(name + ": error " + number(error) + ", allowed " + number(tolerance));
}

void Report::compare(Class& c, const std::string& name, const std::vector<double>& got, const std::vector<double>& want,
                     double tolerance, double floor) {
  if (got.size() != want.size()) {
    failures_.push_back(name + ": " + std::to_string(got.size()) + " numbers, expected " + std::to_string(want.size()));
    return;
  }
  judge(c, name, distance(got, want) / std::max(largest(want), floor), tolerance);
}

void Report::truth(const std::string& name, bool holds) {
  if (!holds) failures_.push_back(name);
}

void Report::print(const std::string& file) const {
  constexpr size_t kShown = 12;
  for (size_t i = 0; i < std::min(failures_.size(), kShown); ++i) std::printf("   DIFFERS %s\n", failures_[i].c_str());
  if (failures_.size() > kShown) std::printf("   ... and %zu more\n", failures_.size() - kShown);
  for (const std::string& s : skipped_) std::printf("   skipped %s\n", s.c_str());
  std::printf("%-26s cases %4lld  arrays %5lld error %.1e  gradients %5lld error %.1e", file.c_str(),
              static_cast<long long>(cases_), static_cast<long long>(values_.arrays), values_.worst,
              static_cast<long long>(gradients_.arrays), gradients_.worst);
  if (special_.arrays > 0)
    std::printf("  special %lld error %.1e", static_cast<long long>(special_.arrays), special_.worst);
  if (!failures_.empty()) {
    std::printf("  %zu DIFFER\n", failures_.size());
  } else {
    std::printf("  %s\n", cases_ > 0 ? "OK" : skipped_.empty() ? "NOTHING FOUND" : "SKIPPED");
  }
}

void Gradients::add(const std::string& name, std::vector<double> got, std::vector<double> want) {
  entries_.push_back({name, std::move(got), std::move(want)});
}

void Gradients::add_all(const OfficialTensors& got, const std::map<std::string, Array>& want,
                        const std::string& except) {
  for (const auto& [name, array] : want) {
    if (name == except) continue;
    const auto found = got.find(name);
    if (found == got.end()) {
      report_.fail(name_ + "/d." + name + ": no such weight in the model");
    } else {
      add(name, found->second.values, array.values);
    }
  }
}

void Gradients::finish() {
  double top = 0;
  for (const Entry& e : entries_) top = std::max(top, largest(e.want));
  const Tolerances& t = report_.tolerances();
  if (t.cosine > 0 && whole_model_) {
    double ab = 0, aa = 0, bb = 0;
    for (const Entry& e : entries_) {
      if (e.got.size() != e.want.size()) report_.fail(name_ + "/d." + e.name + ": wrong size");
      for (size_t i = 0; i < std::min(e.got.size(), e.want.size()); ++i) {
        ab += e.got[i] * e.want[i], aa += e.got[i] * e.got[i], bb += e.want[i] * e.want[i];
      }
    }
    if (!entries_.empty())
      report_.judge(report_.gradients_, name_ + "/gradients (1 - cosine)", 1 - ab / std::sqrt(aa * bb), 1 - t.cosine);
    return;
  }
  for (const Entry& e : entries_) {
    const double floor = report_.dtype_ == DType::bf16 ? top : std::max(largest(e.want), 1e-3 * top);
    const double off = distance(e.got, e.want);
    report_.judge(report_.gradients_, name_ + "/d." + e.name, floor > 0 ? off / floor : off, t.gradients);
  }
}

}  // namespace tactus::golden
