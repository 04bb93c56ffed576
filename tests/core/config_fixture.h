// Options of every type and depth for the tests of the configuration.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"

namespace tactus {
// A namespace of its own: layers/ has options of the same names, and both are linked into one program.
namespace config_fixture {

struct AttentionOptions {
  std::string type = "mtla";
  int64_t heads = 4;
  std::vector<int64_t> strides = {2};
  void visit(ConfigVisitor& v) {
    v.field("type", type, {.doc = "Mechanism", .choices = {"mha", "mla", "mtla"}});
    v.field("heads", heads, {.doc = "Number of heads", .min = 1});
    v.field("strides", strides, {.doc = "Temporal strides", .min = 1});
  }
  bool operator==(const AttentionOptions&) const = default;
};

struct ModelOptions {
  int64_t layers = 2;
  double dropout = 0.1;
  bool causal = true;
  AttentionOptions attention;
  void visit(ConfigVisitor& v) {
    v.field("layers", layers, {.doc = "Number of layers", .min = 1, .max = 200});
    v.field("dropout", dropout, {.doc = "Share of values dropped", .min = 0, .max = 1});
    v.field("causal", causal, {.doc = "Look back only"});
    v.section("attention", attention, "How queries find keys");
  }
  bool operator==(const ModelOptions&) const = default;
};

struct SetOptions {
  std::string path;
  int64_t limit = 0;
  void visit(ConfigVisitor& v) {
    v.field("path", path, {.doc = "File", .required = true});
    v.field("limit", limit, {.doc = "At most so many", .unit = "utterances", .min = 0});
  }
  bool operator==(const SetOptions&) const = default;
};

struct Options {
  std::string name;
  ModelOptions model;
  std::vector<double> rates = {0.1};
  std::vector<std::string> words;
  std::vector<std::pair<std::string, SetOptions>> sets;
  void visit(ConfigVisitor& v) {
    v.field("name", name, {.doc = "Name of the run", .required = true});
    v.section("model", model, "The network");
    v.field("rates", rates, {.doc = "Rates", .unit = "1/s"});
    v.field("words", words, {.doc = "Words"});
    v.sections("sets", sets, "Named data sets");
  }
  bool operator==(const Options&) const = default;
};

template <class T>
T read_as(const Config& config) {
  T options;
  config.read(options);
  return options;
}

/// Message of the ConfigError that `f` throws, "" when it throws none.
template <class F>
std::string error_from(F f) {
  try {
    f();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return {};
}

}  // namespace config_fixture

using namespace config_fixture;

}  // namespace tactus
