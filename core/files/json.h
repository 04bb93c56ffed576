// JSON on one line for log.jsonl, table.json and benchmark results, and the reading of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tactus {

/// Writes one JSON value:
///
///   JsonWriter json;
///   json.begin_object().field("step", step).field("loss",
///   loss).key("sizes").begin_array().value(1).value(2).end_array(); file << json.end_object().str() << '\n';
///
/// Doubles read back equal; NaN and infinities become null, as JSON has no such numbers. Bytes that are not UTF-8
/// become U+FFFD.
class JsonWriter {
 public:
  JsonWriter();
  ~JsonWriter();
  JsonWriter(JsonWriter&&) noexcept;
  JsonWriter& operator=(JsonWriter&&) noexcept;

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(int64_t number);
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool truth);
  JsonWriter& null();
  template <class T>
  JsonWriter& value(const std::vector<T>& list) {
    begin_array();
    for (const T& item : list) value(item);
    return end_array();
  }
  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  /// The finished text, without a line end. Throws Error when an object or array is still open or a key lacks its
  /// value.
  std::string str() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A value read from JSON. Every access that does not fit throws DataError with the place in the text.
class Json {
 public:
  enum class Kind { null, boolean, number, string, array, object };

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;  ///< NaN for null, which is how JsonWriter writes it
  const std::string& as_string() const;

  /// Members of an array; of an object in the order of the text.
  const std::vector<Json>& items() const;
  const std::vector<std::pair<std::string, Json>>& members() const;
  bool has(const std::string& name) const;
  const Json& at(const std::string& name) const;

 private:
  friend struct JsonBuilder;
  [[noreturn]] void wrong(const char* expected) const;

  Kind kind_ = Kind::null;
  std::string text_, where_;
  std::vector<Json> items_;
  std::vector<std::pair<std::string, Json>> members_;
};

/// Parses one JSON value; `name` (a file, "log.jsonl:12") stands in messages. Throws DataError on anything else, also
/// on a line that was cut short.
Json parse_json(const std::string& text, const std::string& name = "<json>");

}  // namespace tactus
