#include "core/config/config.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/config/yaml_tree.h"

namespace tactus {

namespace fs = std::filesystem;
using Kind = YamlNode::Kind;

struct Config::Tree {
  YamlNode root;
  std::string name;
};

namespace {

[[noreturn]] void fail(const std::string& message) { throw ConfigError(message); }

std::string join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream stream(path);
  for (std::string part; std::getline(stream, part, '.');) parts.push_back(part);
  if (!path.empty() && path.back() == '.') parts.emplace_back();
  return parts;
}

/// Lays `over` on `base`: maps merge, everything else replaces. A heading without keys changes nothing in a map.
void merge(YamlNode& base, YamlNode over) {
  if (base.kind == Kind::map && over.kind == Kind::empty) return;
  if (base.kind != Kind::map || over.kind != Kind::map) {
    base = std::move(over);
    return;
  }
  base.where = over.where;
  for (auto& [key, value] : over.entries) {
    if (YamlNode* old = base.find(key))
      merge(*old, std::move(value));
    else
      base.entries.emplace_back(key, std::move(value));
  }
}

void reject_dots(const YamlNode& node) {
  for (const auto& [key, value] : node.entries) {
    if (key.empty() || key.find('.') != std::string::npos)
      fail(value.where + ": the key '" + key +
           "' is empty or contains a dot; write nested keys on lines of their own, indented");
    reject_dots(value);
  }
  for (const YamlNode& item : node.items) reject_dots(item);
}

void set_where(YamlNode& node, const std::string& where) {
  node.where = where;
  for (auto& entry : node.entries) set_where(entry.second, where);
  for (YamlNode& item : node.items) set_where(item, where);
}

std::string read_text(const std::string& file, const std::string& blame) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) fail(blame + "cannot read the configuration '" + file + "': it is a directory");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream && stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  if (!stream.is_open() || stream.bad())
    fail(blame + "cannot read the configuration '" + file + "': " + std::strerror(errno ? errno : EIO));
  return text.str();
}

YamlNode load_tree(const std::string& file, const std::string& blame, std::vector<fs::path>& chain);

YamlNode parse_with_bases(const std::string& text, const std::string& name, const fs::path& folder,
                          std::vector<fs::path>& chain) {
  YamlNode own = parse_yaml(text, name, fail);
  if (own.kind == Kind::empty) own.kind = Kind::map;
  if (own.kind != Kind::map)
    fail(own.where + ": a configuration is a map of keys, but this file holds " + own.describe());
  reject_dots(own);
  YamlNode* found = own.find("base");
  if (!found) return own;
  const YamlNode base = std::move(*found);
  std::erase_if(own.entries, [](const auto& entry) { return entry.first == "base"; });

  YamlNode merged;
  merged.kind = Kind::map;
  for (const YamlNode& item : base.kind == Kind::list ? base.items : std::vector<YamlNode>{base}) {
    if (item.kind != Kind::scalar || item.text.empty())
      fail(base.where + ": 'base' must be a file name or a list of file names, got " + item.describe());
    merge(merged, load_tree((folder / item.text).lexically_normal().string(), base.where + ": base: ", chain));
  }
  merge(merged, std::move(own));
  return merged;
}

YamlNode load_tree(const std::string& file, const std::string& blame, std::vector<fs::path>& chain) {
  std::error_code ignored;
  const fs::path identity = fs::weakly_canonical(file, ignored);
  for (const fs::path& open : chain)
    if (open == identity) fail(blame + "'" + file + "' includes itself through its base files");
  chain.push_back(identity);
  YamlNode tree = parse_with_bases(read_text(file, blame), file, fs::path(file).parent_path(), chain);
  chain.pop_back();
  return tree;
}

void apply_override(YamlNode& root, const std::string& setting) {
  const std::string where = "--set " + setting;
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) fail(where + ": expected key=value");
  YamlNode value = parse_yaml(setting.substr(equals + 1), where, [&](std::string message) {
    const std::string line = where + ":1: ";  // a setting has no lines worth telling
    fail(message.rfind(line, 0) == 0 ? where + ": " + message.substr(line.size()) : message);
  });
  if (value.kind == Kind::empty) value.kind = Kind::scalar, value.quoted = true;
  const std::vector<std::string> parts = split(setting.substr(0, equals));
  if (parts.front() == "base") fail(where + ": 'base' can be given in files only");
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    YamlNode outer;
    outer.kind = Kind::map;
    outer.entries.emplace_back(*part, std::move(value));
    value = std::move(outer);
  }
  set_where(value, where);
  reject_dots(value);
  const std::string root_where = root.where;
  merge(root, std::move(value));
  root.where = root_where;
}

const YamlNode* descend(const YamlNode& root, const std::string& path, std::string* where = nullptr) {
  const YamlNode* node = &root;
  if (where) *where = node->where;
  for (const std::string& part : split(path)) {
    node = node->kind == Kind::map ? node->find(part) : nullptr;
    if (!node) return nullptr;
    if (where) *where = node->where;
  }
  return node;
}

std::string shortest(double value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string join_names(const std::vector<std::string>& names, const char* separator) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : separator) + name;
  return text;
}

}  // namespace

std::string FieldInfo::range() const {
  if (!choices.empty()) return join_names(choices, " | ");
  const bool low = std::isfinite(min), high = std::isfinite(max);
  if (low && high) return "[" + shortest(min) + ", " + shortest(max) + "]";
  if (low) return ">= " + shortest(min);
  return high ? "<= " + shortest(max) : "";
}

/// Fills options from the tree. Unknown and missing keys are told at the end, when all allowed keys are known: a key
/// that is unknown is the likelier reason for one that is missing.
class Config::Parser : public ConfigVisitor {
 public:
  Parser(const YamlNode* node, const std::string& path, const std::string& where) { enter(node, path, where); }

  void field(const std::string& key, bool& value, const FieldInfo& info) override { read(key, value, info); }
  void field(const std::string& key, int64_t& value, const FieldInfo& info) override { read(key, value, info); }
  void field(const std::string& key, double& value, const FieldInfo& info) override { read(key, value, info); }
  void field(const std::string& key, std::string& value, const FieldInfo& info) override { read(key, value, info); }
  void field(const std::string& key, std::vector<int64_t>& value, const FieldInfo& info) override {
    read(key, value, info);
  }
  void field(const std::string& key, std::vector<double>& value, const FieldInfo& info) override {
    read(key, value, info);
  }
  void field(const std::string& key, std::vector<std::string>& value, const FieldInfo& info) override {
    read(key, value, info);
  }

  void finish() const {
    for (const Section& section : sections_) {
      if (!section.node || section.free_names) continue;
      for (const auto& [key, value] : section.node->entries)
        if (std::find(section.allowed.begin(), section.allowed.end(), key) == section.allowed.end())
          fail(value.where + ": " + unknown(section, key));
    }
    if (!missing_.empty()) fail(missing_);
  }

 protected:
  void begin_section(const std::string& key, const std::string&) override {
    const YamlNode* node = take(key);
    enter(node, join(current().path, key), node ? node->where : current().where);
  }
  void end_section() override { open_.pop_back(); }
  bool begin_names(const std::string& key, const std::string& doc, std::vector<std::string>& names) override {
    begin_section(key, doc);
    Section& section = current();
    section.free_names = true;
    if (!section.node) return false;
    names.clear();
    for (const auto& entry : section.node->entries) names.push_back(entry.first);
    return true;
  }

 private:
  struct Section {
    const YamlNode* node;  // null where the file has none
    std::string path, where;
    std::vector<std::string> allowed = {};
    bool free_names = false;
  };

  Section& current() { return sections_[open_.back()]; }

  void enter(const YamlNode* node, const std::string& path, const std::string& where) {
    if (node && node->kind != Kind::map && node->kind != Kind::empty)
      fail(node->where + ": '" + path + "' must be a map of keys, got " + node->describe());
    open_.push_back(sections_.size());
    sections_.push_back({node, path, where});
  }

  const YamlNode* take(const std::string& key) {
    Section& section = current();
    section.allowed.push_back(key);
    return section.node ? section.node->find(key) : nullptr;
  }

  std::string unknown(const Section& section, const std::string& key) const {
    std::string near = nearest_name(key, section.allowed.data(), static_cast<int>(section.allowed.size()));
    if (!near.empty()) near = join(section.path, near);
    // The right key in the wrong place.
    for (const Section& other : sections_)
      if (near.empty() && !other.free_names &&
          std::find(other.allowed.begin(), other.allowed.end(), key) != other.allowed.end())
        near = join(other.path, key);
    return "unknown key '" + join(section.path, key) + "';" + (near.empty() ? "" : " did you mean '" + near + "'?") +
           " allowed: " + (section.allowed.empty() ? "none" : join_names(section.allowed, ", "));
  }

  template <class T>
  void read(const std::string& key, T& value, const FieldInfo& info) {
    const YamlNode* node = take(key);
    name_ = join(current().path, key);
    if (node) return convert(*node, value, info);
    if (info.required && missing_.empty())
      missing_ =
          current().where + ": the required key '" + name_ + "' is missing" + (info.doc.empty() ? "" : ": " + info.doc);
  }

  [[noreturn]] void wrong(const YamlNode& node, const std::string& expected) const {
    std::string got = node.kind == Kind::empty ? "no value" : node.describe();
    fail(node.where + ": '" + name_ + "' must be " + expected + ", got " + got);
  }

  template <class T>
  void convert(const YamlNode& node, std::vector<T>& value, const FieldInfo& info) const {
    if (node.kind != Kind::list) wrong(node, "a list [a, b, ...]");
    value.clear();
    for (const YamlNode& item : node.items) convert(item, value.emplace_back(), info);
  }

  void convert(const YamlNode& node, bool& value, const FieldInfo&) const {
    const bool plain = node.kind == Kind::scalar && !node.quoted;
    if (!plain || (node.text != "true" && node.text != "false")) wrong(node, "true or false");
    value = node.text == "true";
  }

  void convert(const YamlNode& node, std::string& value, const FieldInfo& info) const {
    if (node.kind == Kind::empty) wrong(node, "a string (\"\" for an empty one)");
    if (node.kind != Kind::scalar) wrong(node, "a string");
    const auto& choices = info.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), node.text) == choices.end()) {
      const std::string near = nearest_name(node.text, choices.data(), static_cast<int>(choices.size()));
      fail(node.where + ": '" + name_ + "' must be one of " + join_names(choices, ", ") + ", got " + node.describe() +
           (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    value = node.text;
  }

  void convert(const YamlNode& node, int64_t& value, const FieldInfo& info) const {
    const std::string& text = node.text;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    // A leading zero means octal to some readers and decimal to others.
    const size_t digits = !text.empty() && text[0] == '-';
    const bool zero_led = text.size() > digits + 1 && text[digits] == '0';
    if (node.kind != Kind::scalar || node.quoted || result.ec == std::errc::invalid_argument || result.ptr != end ||
        zero_led)
      wrong(node, "an integer");
    if (result.ec != std::errc{}) wrong(node, "an integer of 64 bits");
    check_range(node, static_cast<double>(value), info);
  }

  void convert(const YamlNode& node, double& value, const FieldInfo& info) const {
    const std::string& text = node.text;
    const char* end = text.data() + text.size();
    if (node.kind != Kind::scalar || node.quoted) wrong(node, "a number");
    if (text == ".inf" || text == "-.inf") {
      value = text[0] == '-' ? -INFINITY : INFINITY;
    } else {
      const auto result = std::from_chars(text.data(), end, value);
      if (result.ec == std::errc::invalid_argument || result.ptr != end) wrong(node, "a number");
      if (result.ec != std::errc{}) wrong(node, "a number of double precision");
      if (!std::isfinite(value)) wrong(node, "a number");  // "inf" and "nan" are words
    }
    check_range(node, value, info);
  }

  void check_range(const YamlNode& node, double value, const FieldInfo& info) const {
    if (value >= info.min && value <= info.max) return;
    const std::string range = info.range();
    wrong(node, (range[0] == '[' ? "in " : "") + range + (info.unit.empty() ? "" : " " + info.unit));
  }

  std::vector<Section> sections_;  // every one visited, in order
  std::vector<size_t> open_;       // indices of those that are not ended
  std::string name_;               // of the field being read
  std::string missing_;            // message of the first required key that is absent
};

Config Config::load(const std::string& file, const std::vector<std::string>& overrides) {
  std::vector<fs::path> chain;
  auto tree = std::make_shared<Tree>();
  tree->name = file;
  tree->root = load_tree(file, "", chain);
  tree->root.where = file;
  for (const std::string& setting : overrides) apply_override(tree->root, setting);
  Config config;
  config.tree_ = std::move(tree);
  return config;
}

Config Config::from_text(const std::string& yaml, const std::string& name, const std::vector<std::string>& overrides) {
  std::vector<fs::path> chain;
  auto tree = std::make_shared<Tree>();
  tree->name = name;
  tree->root = parse_with_bases(yaml, name, {}, chain);
  tree->root.where = name;
  for (const std::string& setting : overrides) apply_override(tree->root, setting);
  Config config;
  config.tree_ = std::move(tree);
  return config;
}

Config Config::section(const std::string& path) const {
  Config part = *this;
  part.prefix_ = join(prefix_, path);
  return part;
}

bool Config::has(const std::string& path) const { return descend(tree_->root, join(prefix_, path)) != nullptr; }

std::vector<std::string> Config::keys(const std::string& path) const {
  const std::string full = path.empty() ? prefix_ : join(prefix_, path);
  const YamlNode* node = descend(tree_->root, full);
  std::vector<std::string> names;
  if (!node) return names;
  if (node->kind != Kind::map && node->kind != Kind::empty)
    fail(node->where + ": '" + full + "' must be a map of keys, got " + node->describe());
  for (const auto& entry : node->entries) names.push_back(entry.first);
  return names;
}

std::string Config::where(const std::string& path) const {
  std::string place;
  descend(tree_->root, join(prefix_, path), &place);
  return place;
}

std::string Config::to_yaml() const {
  const YamlNode* node = descend(tree_->root, prefix_);
  return write_yaml(node ? *node : YamlNode{});
}

std::unique_ptr<ConfigVisitor> Config::make_parser() const {
  std::string place;
  const YamlNode* node = descend(tree_->root, prefix_, &place);
  return std::make_unique<Parser>(node, prefix_, place);
}

void Config::finish(ConfigVisitor& parser) const { static_cast<Parser&>(parser).finish(); }

}  // namespace tactus
