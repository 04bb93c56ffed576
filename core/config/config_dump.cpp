// What options say about themselves: the resolved YAML, the documentation of each key, the hash.
#include <algorithm>
#include <cstdio>

#include "core/config/config.h"
#include "core/config/yaml_tree.h"

namespace tactus {
namespace {

using Kind = YamlNode::Kind;

YamlNode scalar(std::string text, bool quoted = false) {
  YamlNode node;
  node.kind = Kind::scalar;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}
YamlNode to_node(bool value) { return scalar(value ? "true" : "false"); }
YamlNode to_node(int64_t value) { return scalar(std::to_string(value)); }
YamlNode to_node(double value) { return scalar(format_double(value)); }
YamlNode to_node(const std::string& value) { return scalar(value, true); }
template <class T>
YamlNode to_node(const std::vector<T>& values) {
  YamlNode node;
  node.kind = Kind::list;
  for (const T& value : values) node.items.push_back(to_node(value));
  return node;
}

bool has_nan(const YamlNode& node) {
  return (node.text == ".nan" && !node.quoted) || std::any_of(node.items.begin(), node.items.end(), has_nan);
}

/// Forwards every type of field to one template, Derived::visit(key, value, info, type).
template <class Derived>
class EachField : public ConfigVisitor {
 public:
  void field(const std::string& key, bool& value, const FieldInfo& info) override { to(key, value, info, "boolean"); }
  void field(const std::string& key, int64_t& value, const FieldInfo& info) override {
    to(key, value, info, "integer");
  }
  void field(const std::string& key, double& value, const FieldInfo& info) override { to(key, value, info, "number"); }
  void field(const std::string& key, std::string& value, const FieldInfo& info) override {
    to(key, value, info, "string");
  }
  void field(const std::string& key, std::vector<int64_t>& value, const FieldInfo& info) override {
    to(key, value, info, "list of integers");
  }
  void field(const std::string& key, std::vector<double>& value, const FieldInfo& info) override {
    to(key, value, info, "list of numbers");
  }
  void field(const std::string& key, std::vector<std::string>& value, const FieldInfo& info) override {
    to(key, value, info, "list of strings");
  }

 private:
  template <class T>
  void to(const std::string& key, const T& value, const FieldInfo& info, const char* type) {
    static_cast<Derived*>(this)->visit(key, to_node(value), info, type);
  }
};

class Dumper : public EachField<Dumper> {
 public:
  Dumper() : open_(1) { open_.back().kind = Kind::map; }
  void visit(const std::string& key, YamlNode value, const FieldInfo&, const char*) {
    if (has_nan(value)) throw Error("config: '" + key + "' is not a number (NaN) and cannot be written");
    open_.back().entries.emplace_back(key, std::move(value));
  }
  std::string yaml() const { return write_yaml(open_.front()); }

 protected:
  void begin_section(const std::string& key, const std::string&) override {
    open_.emplace_back().kind = Kind::map;
    keys_.push_back(key);
  }
  void end_section() override {
    YamlNode done = std::move(open_.back());
    open_.pop_back();
    open_.back().entries.emplace_back(keys_.back(), std::move(done));
    keys_.pop_back();
  }
  bool begin_names(const std::string& key, const std::string& doc, std::vector<std::string>&) override {
    begin_section(key, doc);
    return false;
  }

 private:
  std::vector<YamlNode> open_;  // the root and the sections not yet ended
  std::vector<std::string> keys_;
};

class Explainer : public EachField<Explainer> {
 public:
  std::vector<KeyDoc> docs;

  void visit(const std::string& key, const YamlNode& value, const FieldInfo& info, const char* type) {
    std::string text = info.required ? "required" : write_yaml(value);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    docs.push_back({path_ + key, type, info.unit, text, info.range(), info.doc, false});
  }

 protected:
  void begin_section(const std::string& key, const std::string& doc) override {
    docs.push_back({path_ + key, "section", "", "", "", doc, true});
    lengths_.push_back(path_.size());
    path_ += key + ".";
  }
  void end_section() override {
    path_.resize(lengths_.back());
    lengths_.pop_back();
  }
  bool begin_names(const std::string& key, const std::string& doc, std::vector<std::string>& names) override {
    begin_section(key, doc);
    names = {"NAME"};  // stands for any
    return true;
  }

 private:
  std::string path_;
  std::vector<size_t> lengths_;
};

}  // namespace

std::string dump_options_yaml(const std::function<void(ConfigVisitor&)>& visit) {
  Dumper dumper;
  visit(dumper);
  return dumper.yaml();
}

std::vector<KeyDoc> explain_options(const std::function<void(ConfigVisitor&)>& visit) {
  Explainer explainer;
  visit(explainer);
  return std::move(explainer.docs);
}

std::string text_hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ull;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace tactus
