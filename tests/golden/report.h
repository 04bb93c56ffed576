// What a check of one file found: arrays compared, worst errors, what differs, what was left out.
//
// Error of an array: max|a - b| / floor, the floor being max(max|b|, 1e-3) for values, and for gradients
// max(max|b|, 1e-3 of the largest entry of all gradients of the case): some gradients are mathematically zero. In
// bfloat16 single gradient arrays say little, so modules measure them against the largest entry of the case, and whole
// models by the cosine of all gradients laid end to end.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/context.h"
#include "tests/golden/source.h"

namespace tactus::golden {

struct Tolerances {
  double values = 0;       ///< of arrays in the compute type
  double accumulated = 0;  ///< of arrays that are kept in the accumulation type
  double gradients = 0;
  double cosine = 0;         ///< of the gradients of whole models; 0: array by array
  double search_scores = 0;  ///< 0: beams are not checked
  static Tolerances of(Device device, DType dtype);
};

class Report {
 public:
  Report(Device device, DType dtype) : dtype_(dtype), tolerances_(Tolerances::of(device, dtype)) {}
  const Tolerances& tolerances() const { return tolerances_; }

  void begin_case() { ++cases_; }
  void value(const std::string& name, const std::vector<double>& got, const std::vector<double>& want) {
    compare(values_, name, got, want, tolerances_.values, 1e-3);
  }
  void accumulated(const std::string& name, const std::vector<double>& got, const std::vector<double>& want) {
    compare(values_, name, got, want, tolerances_.accumulated, 1e-3);
  }
  /// As value(), with limits of the array's own: host results and float32 products.
  void special(const std::string& name, const std::vector<double>& got, const std::vector<double>& want,
               double tolerance, double floor = 1e-3) {
    compare(special_, name, got, want, tolerance, floor);
  }
  void truth(const std::string& name, bool holds);
  void skip(const std::string& what, const std::string& why) { skipped_.insert(what + " (" + why + ")"); }
  void fail(const std::string& message) { failures_.push_back(message); }

  /// "cases 12  arrays 40 error 1.0e-15 ...  OK" and, before it, a line for each array that differs.
  void print(const std::string& file) const;
  bool ok() const { return failures_.empty() && (cases_ > 0 || !skipped_.empty()); }

 private:
  friend class Gradients;
  struct Class {
    int64_t arrays = 0;
    double worst = 0;
  };
  void compare(Class& c, const std::string& name, const std::vector<double>& got, const std::vector<double>& want,
               double tolerance, double floor);
  void judge(Class& c, const std::string& name, double error, double tolerance);
  DType dtype_;
  Tolerances tolerances_;
  int64_t cases_ = 0;
  Class values_, gradients_, special_;
  std::vector<std::string> failures_;
  std::set<std::string> skipped_;
};

/// The gradients of one case, judged together.
class Gradients {
 public:
  Gradients(Report& report, std::string name, bool whole_model)
      : report_(report), name_(std::move(name)), whole_model_(whole_model) {}
  void add(const std::string& name, std::vector<double> got, std::vector<double> want);
  /// Every array of `want` against the tensor of the same name; names that `got` lacks are failures.
  void add_all(const OfficialTensors& got, const std::map<std::string, Array>& want, const std::string& except = "");
  void finish();

 private:
  struct Entry {
    std::string name;
    std::vector<double> got, want;
  };
  Report& report_;
  std::string name_;
  bool whole_model_;
  std::vector<Entry> entries_;
};

}  // namespace tactus::golden
