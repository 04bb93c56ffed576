// Strict YAML configuration. Each component owns a plain options struct with one method
//
//   void visit(ConfigVisitor& v) {
//     v.field("layers", layers, {.doc = "Number of layers", .min = 1, .max = 200});
//     v.section("attention", attention, "How queries find keys");
//     v.sections("sets", sets, "Named data sets");  // std::vector<std::pair<std::string, SetOptions>>
//   }
//
// and from that one list come parsing, validation, dumping, `tactus explain` and the hash. An unknown key is a
// ConfigError with file, line, the nearest key and the allowed keys.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tactus {

/// What is said about one key.
struct FieldInfo {
  std::string doc;
  std::string unit = {};                                  ///< "frames", "seconds", ...; empty: a plain number
  double min = -std::numeric_limits<double>::infinity();  ///< inclusive
  double max = std::numeric_limits<double>::infinity();   ///< inclusive
  std::vector<std::string> choices = {};                  ///< allowed strings; empty: any
  bool required = false;                                  ///< must be given; has no default

  std::string range() const;  ///< "[1, 200]", ">= 0", "mha | mla"; empty where anything goes
};

/// Walks over the fields of options structs. Parsing, dumping and explaining are implementations of this interface.
class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;
  virtual void field(const std::string& key, bool& value, const FieldInfo& info) = 0;
  virtual void field(const std::string& key, int64_t& value, const FieldInfo& info) = 0;
  virtual void field(const std::string& key, double& value, const FieldInfo& info) = 0;
  /// Strings are kept as typed: n, y, on, 1e3, 0x10 stay text.
  virtual void field(const std::string& key, std::string& value, const FieldInfo& info) = 0;
  virtual void field(const std::string& key, std::vector<int64_t>& value, const FieldInfo& info) = 0;
  virtual void field(const std::string& key, std::vector<double>& value, const FieldInfo& info) = 0;
  virtual void field(const std::string& key, std::vector<std::string>& value, const FieldInfo& info) = 0;
  template <class Options>
  void section(const std::string& key, Options& options, const std::string& doc) {
    begin_section(key, doc);
    options.visit(*this);
    end_section();
  }
  /// A map whose keys are free names, each holding one Options. What the file lists replaces what was there before.
  template <class Options>
  void sections(const std::string& key, std::vector<std::pair<std::string, Options>>& named, const std::string& doc) {
    std::vector<std::string> names;
    for (const auto& entry : named) names.push_back(entry.first);
    if (begin_names(key, doc, names)) {
      named.clear();
      for (const std::string& name : names) named.emplace_back(name, Options{});
    }
    for (auto& [name, options] : named) section(name, options, "");
    end_section();
  }

 protected:
  /// Opens a section of free names; true when `names` was changed.
  virtual bool begin_names(const std::string& key, const std::string& doc, std::vector<std::string>& names) = 0;
  virtual void begin_section(const std::string& key, const std::string& doc) = 0;
  virtual void end_section() = 0;
};

/// A loaded configuration: the YAML file with its `base:` files (one path or a list, later ones win) merged below it and
/// `--set a.b=c` overrides on top. Maps merge, scalars and lists replace. A relative base is relative to the file that
/// names it; a cycle is an error. Remembers file and line of every key. All faults are ConfigError.
class Config {
 public:
  /// Reads FILE. Overrides are "a.b.c=value": the value is parsed as YAML, an empty one is the empty string. They may
  /// name keys that the file lacks; read() rejects the unknown ones like those of a file. Syntax errors name file and
  /// line.
  static Config load(const std::string& file, const std::vector<std::string>& overrides = {});
  static Config from_text(const std::string& yaml, const std::string& name = "<text>",
                          const std::vector<std::string>& overrides = {});

  /// Fills `options` and rejects unknown keys, wrong types and values out of range.
  template <class Options>
  void read(Options& options) const {
    auto parser = make_parser();
    options.visit(*parser);
    finish(*parser);
  }
  /// The section at `path` ("a.b") by itself: read() then leaves every key outside it alone. An absent one has no keys.
  Config section(const std::string& path) const;
  bool has(const std::string& path) const;
  /// Names of the children of a map, in file order; used for maps with free keys (named data sets, table rows).
  std::vector<std::string> keys(const std::string& path = "") const;
  /// "file:line" of a key, or "--set a.b=c", for messages; of the nearest enclosing section where the key is absent.
  std::string where(const std::string& path) const;
  /// The merged tree; loading it gives the same configuration.
  std::string to_yaml() const;

  class Parser;

 private:
  struct Tree;
  std::shared_ptr<const Tree> tree_;
  std::string prefix_;
  std::unique_ptr<ConfigVisitor> make_parser() const;
  void finish(ConfigVisitor& parser) const;
};

/// YAML of the options with every default spelled out: the resolved configuration. Loading it gives equal options.
std::string dump_options_yaml(const std::function<void(ConfigVisitor&)>& visit);
template <class Options>
std::string dump_yaml(const Options& options) {
  Options copy = options;
  return dump_options_yaml([&](ConfigVisitor& v) { copy.visit(v); });
}

/// One line of documentation for `tactus explain`.
struct KeyDoc {
  std::string key;  ///< full dotted name
  std::string type;
  std::string unit;
  std::string default_value;
  std::string range;
  std::string doc;
  bool is_section = false;
};
std::vector<KeyDoc> explain_options(const std::function<void(ConfigVisitor&)>& visit);
template <class Options>
std::vector<KeyDoc> explain(Options options = Options()) {
  return explain_options([&](ConfigVisitor& v) { options.visit(v); });
}

/// 64-bit FNV-1a hash as 16 hexadecimal digits.
std::string text_hash(const std::string& text);
/// Hash of the dumped options: equal options have equal hashes.
template <class Options>
std::string options_hash(const Options& options) {
  return text_hash(dump_yaml(options));
}

}  // namespace tactus
