#include "core/files/json.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <charconv>
#include <cmath>

#include "core/config/yaml_tree.h"

namespace tactus {

struct JsonWriter::State {
  YAML::Emitter emitter;
  std::string open;  ///< one '{' or '[' for each level
  bool after_key = false;
  bool done = false;

  /// A value is allowed here: after a key in an object, anywhere in an array, once at the top.
  void expect_value() {
    const bool in_object = !open.empty() && open.back() == '{';
    if (done || in_object != after_key) throw Error("JsonWriter: a value where a key, or nothing, is expected");
    after_key = false;
    done = open.empty();
  }
  void expect_end(char kind) {
    if (open.empty() || open.back() != kind || after_key) throw Error("JsonWriter: an end that has no beginning");
    open.pop_back();
    done = open.empty();
  }
};

JsonWriter::JsonWriter() : state_(std::make_unique<State>()) {
  YAML::Emitter& e = state_->emitter;
  e.SetMapFormat(YAML::Flow);
  e.SetSeqFormat(YAML::Flow);
  e.SetStringFormat(YAML::DoubleQuoted);
  e.SetOutputCharset(YAML::EscapeAsJson);
  e.SetNullFormat(YAML::LowerNull);
}
JsonWriter::~JsonWriter() = default;
JsonWriter::JsonWriter(JsonWriter&&) noexcept = default;
JsonWriter& JsonWriter::operator=(JsonWriter&&) noexcept = default;

JsonWriter& JsonWriter::begin_object() {
  state_->expect_value();
  state_->done = false;
  state_->open += '{';
  state_->emitter << YAML::BeginMap;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  state_->expect_end('{');
  state_->emitter << YAML::EndMap;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  state_->expect_value();
  state_->done = false;
  state_->open += '[';
  state_->emitter << YAML::BeginSeq;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  state_->expect_end('[');
  state_->emitter << YAML::EndSeq;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  if (state_->open.empty() || state_->open.back() != '{' || state_->after_key)
    throw Error("JsonWriter: the key '" + std::string(name) + "' is not inside an object");
  // The emitter writes longer keys in a form that is YAML alone.
  if (name.size() > 1024) throw Error("JsonWriter: a key has more than 1024 bytes");
  state_->after_key = true;
  state_->emitter << YAML::Key << std::string(name) << YAML::Value;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  state_->expect_value();
  state_->emitter << std::string(text);
  return *this;
}

JsonWriter& JsonWriter::value(int64_t number) {
  state_->expect_value();
  state_->emitter << number;
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  state_->expect_value();
  // As text without quotes: the emitter's own doubles are either rounded or 17 digits long.
  state_->emitter << YAML::Auto << format_double(number);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  state_->expect_value();
  state_->emitter << truth;
  return *this;
}

JsonWriter& JsonWriter::null() {
  state_->expect_value();
  state_->emitter << YAML::Null;
  return *this;
}

std::string JsonWriter::str() const {
  if (!state_->done || !state_->emitter.good()) throw Error("JsonWriter: the value is not complete");
  return {state_->emitter.c_str(), state_->emitter.size()};
}

namespace {

bool is_number(const std::string& text, double& value) {
  if (text.empty() || !(text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) return false;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size() && std::isfinite(value);
}

[[noreturn]] void fail(const std::string& message) { throw DataError(message); }

}  // namespace

struct JsonBuilder {
  static Json build(YamlNode&& node) {
    Json json;
    json.where_ = std::move(node.where);
    switch (node.kind) {
      case YamlNode::Kind::empty:
        fail(json.where_ + ": a value is missing in this JSON");
      case YamlNode::Kind::scalar:
        scalar(node, json);
        break;
      case YamlNode::Kind::list:
        json.kind_ = Json::Kind::array;
        for (YamlNode& item : node.items) json.items_.push_back(build(std::move(item)));
        break;
      case YamlNode::Kind::map:
        json.kind_ = Json::Kind::object;
        for (auto& [name, value] : node.entries) json.members_.emplace_back(name, build(std::move(value)));
        break;
    }
    return json;
  }

  static void scalar(YamlNode& node, Json& json) {
    double number;
    if (node.quoted)
      json.kind_ = Json::Kind::string;
    else if (node.text == "null")
      json.kind_ = Json::Kind::null;
    else if (node.text == "true" || node.text == "false")
      json.kind_ = Json::Kind::boolean;
    else if (is_number(node.text, number))
      json.kind_ = Json::Kind::number;
    else
      fail(json.where_ + ": '" + node.text + "' is no JSON value");
    json.text_ = std::move(node.text);
  }
};

Json parse_json(const std::string& text, const std::string& name) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) fail(name + ": expected JSON, found nothing");
  if (text[first] != '{' && text[first] != '[' && text.find_first_of("\"-0123456789tfn", first) != first)
    fail(name + ": expected JSON, found other text");
  Json json = JsonBuilder::build(parse_yaml(text, name, fail));
  // Indented YAML is not meant, even where it parses.
  const char opening = json.kind() == Json::Kind::object ? '{' : json.kind() == Json::Kind::array ? '[' : text[first];
  if (text[first] != opening) fail(name + ": expected JSON, found other text");
  return json;
}

void Json::wrong(const char* expected) const {
  static constexpr const char* kNames[] = {"null", "a truth value", "a number", "a string", "an array", "an object"};
  throw DataError(where_ + ": expected " + expected + ", found " + kNames[static_cast<int>(kind_)]);
}

bool Json::as_bool() const {
  if (kind_ != Kind::boolean) wrong("a truth value");
  return text_ == "true";
}

int64_t Json::as_int() const {
  int64_t value = 0;
  const char* end = text_.data() + text_.size();
  const auto result = std::from_chars(text_.data(), end, value);
  if (kind_ != Kind::number || result.ec != std::errc{} || result.ptr != end) wrong("an integer of 64 bits");
  return value;
}

double Json::as_double() const {
  double value = 0;
  if (kind_ == Kind::null) return NAN;
  if (kind_ != Kind::number || !is_number(text_, value)) wrong("a number");
  return value;
}

const std::string& Json::as_string() const {
  if (kind_ != Kind::string) wrong("a string");
  return text_;
}

const std::vector<Json>& Json::items() const {
  if (kind_ != Kind::array) wrong("an array");
  return items_;
}

const std::vector<std::pair<std::string, Json>>& Json::members() const {
  if (kind_ != Kind::object) wrong("an object");
  return members_;
}

bool Json::has(const std::string& name) const {
  for (const auto& member : members())
    if (member.first == name) return true;
  return false;
}

const Json& Json::at(const std::string& name) const {
  for (const auto& member : members())
    if (member.first == name) return member.second;
  throw DataError(where_ + ": the JSON object has no member '" + name + "'");
}

}  // namespace tactus
