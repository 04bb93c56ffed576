#include "core/files/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tactus {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "t.jsonl:7");
  } catch (const DataError& e) {
    return e.what();
  }
  return {};
}

TEST(Json, WritesOneLineOfEveryKind) {
  JsonWriter json;
  json.begin_object().field("step", 12).field("loss", 0.1).field("name", "a \"b\" \\ \n\tü").field("ok", true);
  json.key("none").null().field("sizes", std::vector<int64_t>{1, 2}).key("rows").begin_array();
  json.begin_object().field("x", -1.0).end_object().begin_array().end_array().begin_object().end_object().value("s");
  const std::string text = json.end_array().end_object().str();
  EXPECT_EQ(text, R"({"step": 12, "loss": 0.1, "name": "a \"b\" \\ \n\tü", "ok": true, "none": null, "sizes": [1, 2], )"
                  R"("rows": [{"x": -1.0}, [], {}, "s"]})");
}

TEST(Json, StringsReadBackEqual) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  for (const std::string& s : {all, std::string(), std::string("null"), std::string("1e3"), std::string("übung 語 😀"),
                               std::string("key: value, [x]"), std::string(5000, 'x') + " y"}) {
    JsonWriter json;
    json.begin_object().field(s.size() > 1000 ? "long" : s, s).end_object();
    EXPECT_EQ(json.str().find('\n'), std::string::npos);
    const Json back = parse_json(json.str());
    EXPECT_EQ(back.members().at(0).second.as_string(), s);
    EXPECT_EQ(back.members().at(0).first, s.size() > 1000 ? "long" : s);
  }
}

TEST(Json, DoublesReadBackEqual) {
  for (double x : {0.0, 1.0, -2.5, 0.1 + 0.2, 1e-5, 1e100, 5e-324, std::numeric_limits<double>::max(), 1e15,
                   123456789012345680.0}) {
    JsonWriter json;
    json.begin_array().value(x).end_array();
    EXPECT_EQ(parse_json(json.str()).items().at(0).as_double(), x) << json.str();
  }
}

TEST(Json, WhatIsNoNumberIsNull) {
  JsonWriter json;
  json.value(std::vector<double>{NAN, INFINITY, -INFINITY});
  EXPECT_EQ(json.str(), "[null, null, null]");
  const Json back = parse_json(json.str());
  EXPECT_TRUE(back.items()[1].is_null());
  EXPECT_TRUE(std::isnan(back.items()[0].as_double()));
}

TEST(Json, IntegersKeepAllDigits) {
  for (int64_t x :
       {int64_t{0}, int64_t{-7}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    JsonWriter json;
    json.value(x);
    EXPECT_EQ(json.str(), std::to_string(x));
    EXPECT_EQ(parse_json(json.str()).as_int(), x);
  }
}

TEST(Json, WriterRefusesWrongOrder) {
  EXPECT_THROW(JsonWriter().str(), Error);
  EXPECT_THROW(JsonWriter().key("a"), Error);
  EXPECT_THROW(JsonWriter().begin_object().value(1), Error);
  EXPECT_THROW(JsonWriter().begin_object().key("a").key("b"), Error);
  EXPECT_THROW(JsonWriter().begin_object().key("a").end_object(), Error);
  EXPECT_THROW(JsonWriter().begin_array().end_object(), Error);
  EXPECT_THROW(JsonWriter().value(1).value(2), Error);
  EXPECT_THROW(JsonWriter().begin_object().str(), Error);
  EXPECT_THROW(JsonWriter().begin_object().key(std::string(1025, 'k')), Error);
  EXPECT_NO_THROW(JsonWriter().begin_array().value(1).value(2).end_array().str());
}

TEST(Json, ReadsWhatOthersWrite) {
  const Json json = parse_json("{\"a\":1,\n \"b\" : [true,false,null,-1.5e-3],\"c\":{\"d\":\"\\u00fc\\/\"}}");
  EXPECT_EQ(json.at("a").as_int(), 1);
  EXPECT_EQ(json.at("a").as_double(), 1.0);
  EXPECT_TRUE(json.at("b").items()[0].as_bool());
  EXPECT_EQ(json.at("b").items()[3].as_double(), -1.5e-3);
  EXPECT_EQ(json.at("c").at("d").as_string(), "ü/");
  EXPECT_TRUE(json.has("c"));
  EXPECT_FALSE(json.has("x"));
}

TEST(Json, FaultsAreDataErrorsWithThePlace) {
  for (const char* wrong : {"", "  ", "{\"a\": 1", "{\"a\": \"x", "{\"a\": \"x\n", "[1, 2", "{\"a\": nul}", "a: 1",
                            "- 1", "{\"a\"}", "{\"a\": 1, \"a\": 2}", "abc", "tru", "[0x10]", "[.5]"})
    EXPECT_EQ(error_of(wrong).rfind("t.jsonl:7", 0), 0u) << wrong << " -> " << error_of(wrong);
  const Json json = parse_json("{\"a\": 1.5, \"b\": \"x\"}", "f");
  EXPECT_THROW(json.at("a").as_int(), DataError);
  EXPECT_THROW(json.at("b").as_double(), DataError);
  EXPECT_THROW(json.at("a").as_string(), DataError);
  EXPECT_THROW(json.at("a").as_bool(), DataError);
  EXPECT_THROW(json.at("a").items(), DataError);
  EXPECT_THROW(json.at("a").has("x"), DataError);
  try {
    json.at("loss");
    FAIL();
  } catch (const DataError& e) {
    EXPECT_STREQ(e.what(), "f:1: the JSON object has no member 'loss'");
  }
}

}  // namespace
}  // namespace tactus
