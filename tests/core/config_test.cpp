#include "core/config/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/config_fixture.h"

namespace tactus {
namespace {

std::string error_of(const std::string& yaml) {
  return error_from([&] { read_as<Options>(Config::from_text(yaml, "c.yaml")); });
}

TEST(Config, ReadsEveryType) {
  const Options o = read_as<Options>(Config::from_text(R"(
name: run one
model:
  layers: 6
  dropout: 1e-3
  causal: false
  attention: {type: mla, heads: 8, strides: [1, 2, 3]}
rates: [1, 0.5, 2e-1]
words: [a, "b c", n]
sets:
  train: {path: t.h5}
  dev: {path: d.h5, limit: 10}
)"));
  EXPECT_EQ(o.name, "run one");
  EXPECT_EQ(o.model.layers, 6);
  EXPECT_EQ(o.model.dropout, 1e-3);
  EXPECT_FALSE(o.model.causal);
  EXPECT_EQ(o.model.attention.type, "mla");
  EXPECT_EQ(o.model.attention.heads, 8);
  EXPECT_EQ(o.model.attention.strides, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(o.rates, (std::vector<double>{1, 0.5, 0.2}));
  EXPECT_EQ(o.words, (std::vector<std::string>{"a", "b c", "n"}));
  ASSERT_EQ(o.sets.size(), 2u);
  EXPECT_EQ(o.sets[0].first, "train");
  EXPECT_EQ(o.sets[1].second.path, "d.h5");
  EXPECT_EQ(o.sets[1].second.limit, 10);
}

TEST(Config, KeepsDefaultsOfAbsentKeys) {
  const Options o = read_as<Options>(Config::from_text("name: x\nmodel:\n  attention:\n"));
  EXPECT_EQ(o.model.layers, 2);
  EXPECT_EQ(o.model.attention.type, "mtla");
  EXPECT_EQ(o.rates, (std::vector<double>{0.1}));
}

TEST(Config, StringsAreKeptAsTyped) {
  for (const char* text : {"n",        "y",    "on",   "off",  "no",         "1e3",   "0x10",  "010", "~",
                           "null",     "NULL", "true", "1.50", "2024-01-01", "12:30", "+5",    ".5",  "1_000",
                           "Ja, klar", "a#b",  "=",    "a: b", "#x",         "",      " lead", "- x"}) {
    const std::string typed = text;
    const bool plain = typed.find(": ") == std::string::npos && typed != "" && typed[0] != '#' && typed[0] != ' ' &&
                       typed.rfind("- ", 0) != 0;
    const std::string yaml = "name: " + (plain ? typed : "'" + typed + "'") + "\nmodel: {}\n";
    EXPECT_EQ(read_as<Options>(Config::from_text(yaml)).name, typed) << yaml;
  }
  const Options o = read_as<Options>(Config::from_text("name: ~\nwords: [~, null, n, 1e3, 'x']\n"));
  EXPECT_EQ(o.words, (std::vector<std::string>{"~", "null", "n", "1e3", "x"}));
}

TEST(Config, AStringWithoutValueIsAnError) {
  // The next key begins like a null; it must not be taken for the value.
  EXPECT_EQ(error_of("words: [a]\nname:\nmodel: {}\n"),
            "c.yaml:2: 'name' must be a string (\"\" for an empty one), got no value");
  EXPECT_EQ(error_from([] { Config::from_text("name:\nnull: 1\n", "c.yaml").read(*std::make_unique<Options>()); }),
            "c.yaml:1: 'name' must be a string (\"\" for an empty one), got no value");
}

TEST(Config, UnknownKeyAtEachLevelNamesPlaceNearestAndAllowed) {
  EXPECT_EQ(error_of("name: x\nmodle:\n  layers: 3\n"),
            "c.yaml:2: unknown key 'modle'; did you mean 'model'? allowed: name, model, rates, words, sets");
  EXPECT_EQ(
      error_of("name: x\nmodel:\n\n  layrs: 3\n"),
      "c.yaml:4: unknown key 'model.layrs'; did you mean 'model.layers'? allowed: layers, dropout, causal, attention");
  EXPECT_EQ(error_of("name: x\nmodel:\n  attention:\n    type: mla\n    haeds: 2\n"),
            "c.yaml:5: unknown key 'model.attention.haeds'; did you mean 'model.attention.heads'? allowed: type, "
            "heads, strides");
  EXPECT_EQ(error_of("name: x\nsets:\n  train:\n    path: a\n    limt: 3\n"),
            "c.yaml:5: unknown key 'sets.train.limt'; did you mean 'sets.train.limit'? allowed: path, limit");
}

TEST(Config, UnknownKeyFarFromAllHasNoSuggestion) {
  EXPECT_EQ(error_of("name: x\nzzzzzzzz: 1\n"),
            "c.yaml:2: unknown key 'zzzzzzzz'; allowed: name, model, rates, words, sets");
}

TEST(Config, RightKeyInTheWrongPlaceIsFound) {
  EXPECT_NE(error_of("name: x\nstrides: [2]\n").find("did you mean 'model.attention.strides'?"), std::string::npos);
}

TEST(Config, UnknownKeyIsToldBeforeTheMissingOneItStandsFor) {
  EXPECT_NE(error_of("nmae: x\n").find("unknown key 'nmae'; did you mean 'name'?"), std::string::npos);
}

TEST(Config, MissingRequiredKeyNamesItsSection) {
  EXPECT_EQ(error_of("model: {}\n"), "c.yaml: the required key 'name' is missing: Name of the run");
  EXPECT_EQ(error_of("name: x\nsets:\n  dev:\n    limit: 2\n"),
            "c.yaml:3: the required key 'sets.dev.path' is missing: File");
}

TEST(Config, IntegersAreLiterals) {
  for (const char* wrong :
       {"1.5", "1e3", "0x10", "010", "1_000", "\"3\"", "three", "~", "true", "+3", "[3]", "{a: 1}", "3 4"}) {
    const std::string e = error_of(std::string("name: x\nmodel:\n  layers: ") + wrong + "\n");
    EXPECT_EQ(e.rfind("c.yaml:3: 'model.layers' must be an integer, got ", 0), 0u) << wrong << " -> " << e;
  }
  EXPECT_EQ(error_of("name: x\nmodel:\n  layers:\n"), "c.yaml:3: 'model.layers' must be an integer, got no value");
  EXPECT_EQ(error_of("name: x\nmodel:\n  layers: 99999999999999999999\n"),
            "c.yaml:3: 'model.layers' must be an integer of 64 bits, got '99999999999999999999'");
  EXPECT_EQ(error_of("name: x\nmodel:\n  attention:\n    strides: [1, 2.0]\n"),
            "c.yaml:4: 'model.attention.strides' must be an integer, got '2.0'");
}

TEST(Config, DoublesAcceptIntegersAndExponents) {
  for (const auto& [text, value] : std::vector<std::pair<std::string, double>>{
           {"0", 0}, {"1e-3", 1e-3}, {"0.25", 0.25}, {".5", 0.5}, {"5e-1", 0.5}, {"1", 1}})
    EXPECT_EQ(read_as<Options>(Config::from_text("name: x\nmodel: {dropout: " + text + "}\n")).model.dropout, value);
  for (const char* wrong : {"nan", ".nan", "inf", "\"0.5\"", "0x1p3", "1e", "[0.5]", "high"})
    EXPECT_NE(error_of(std::string("name: x\nmodel: {dropout: ") + wrong + "}\n")
                  .find("'model.dropout' must be a number, got"),
              std::string::npos)
        << wrong;
  EXPECT_TRUE(std::isinf(read_as<Options>(Config::from_text("name: x\nrates: [.inf]\n")).rates[0]));
}

TEST(Config, BooleansAreTrueOrFalse) {
  for (const char* wrong : {"yes", "True", "1", "on", "n", "\"true\"", "[true]"})
    EXPECT_NE(error_of(std::string("name: x\nmodel: {causal: ") + wrong + "}\n")
                  .find("'model.causal' must be true or false, got"),
              std::string::npos)
        << wrong;
}

TEST(Config, RangesAreInclusive) {
  EXPECT_EQ(read_as<Options>(Config::from_text("name: x\nmodel: {layers: 1}\n")).model.layers, 1);
  EXPECT_EQ(read_as<Options>(Config::from_text("name: x\nmodel: {layers: 200}\n")).model.layers, 200);
  EXPECT_EQ(error_of("name: x\nmodel:\n  layers: 0\n"), "c.yaml:3: 'model.layers' must be in [1, 200], got '0'");
  EXPECT_EQ(error_of("name: x\nmodel:\n  layers: 201\n"), "c.yaml:3: 'model.layers' must be in [1, 200], got '201'");
  EXPECT_EQ(error_of("name: x\nsets:\n  a:\n    path: p\n    limit: -1\n"),
            "c.yaml:5: 'sets.a.limit' must be >= 0 utterances, got '-1'");
  EXPECT_EQ(error_of("name: x\nmodel:\n  attention:\n    strides: [1, 0]\n"),
            "c.yaml:4: 'model.attention.strides' must be >= 1, got '0'");
}

TEST(Config, ChoicesAreNamed) {
  EXPECT_EQ(error_of("name: x\nmodel:\n  attention:\n    type: mtlaa\n"),
            "c.yaml:4: 'model.attention.type' must be one of mha, mla, mtla, got 'mtlaa'; did you mean 'mtla'?");
}

TEST(Config, SectionsMustBeMapsAndListsMustBeLists) {
  EXPECT_EQ(error_of("name: x\nmodel: 3\n"), "c.yaml:2: 'model' must be a map of keys, got '3'");
  EXPECT_EQ(error_of("name: x\nsets: [a]\n"), "c.yaml:2: 'sets' must be a map of keys, got a list");
  EXPECT_EQ(error_of("name: x\nrates: 3\n"), "c.yaml:2: 'rates' must be a list [a, b, ...], got '3'");
  EXPECT_EQ(error_of("name: {a: b}\n"), "c.yaml:1: 'name' must be a string, got a map");
}

TEST(Config, DuplicateKeysAreErrors) {
  EXPECT_EQ(error_of("name: x\nmodel:\n  layers: 3\n  causal: true\n  layers: 4\n"),
            "c.yaml:5: duplicate key 'layers', first given at c.yaml:3");
  EXPECT_EQ(error_of("name: x\nname: y\n"), "c.yaml:2: duplicate key 'name', first given at c.yaml:1");
  EXPECT_EQ(error_of("model: {layers: 1, layers: 1}\n"), "c.yaml:1: duplicate key 'layers', first given at c.yaml:1");
}

TEST(Config, SyntaxErrorsNameTheLine) {
  for (const auto& [yaml, place] : std::vector<std::pair<std::string, std::string>>{
           {"name: x\nmodel: {layers: 3\n", "c.yaml:"},
           {"name: x\nmodel:\n\tlayers: 3\n", "c.yaml:3: YAML syntax error"},
           {"name: x\n  layers: 3\n", "c.yaml:2: YAML syntax error"},
           {"name: \"abc\n", "c.yaml:"},
           {"name: *nowhere\n", "c.yaml:1: YAML syntax error"}}) {
    const std::string e = error_of(yaml);
    EXPECT_EQ(e.rfind(place, 0), 0u) << e;
    EXPECT_NE(e.find("YAML syntax error"), std::string::npos) << e;
    EXPECT_EQ(e.find('\n'), std::string::npos) << e;
  }
}

TEST(Config, WhatYamlAllowsAndAConfigurationDoesNot) {
  const std::string table = error_of("id\ttext\n" + std::string(5000, 'a') + "\n");
  EXPECT_NE(table.find("holds 'id\ttext aaa"), std::string::npos) << table;
  EXPECT_LT(table.size(), 250u);
  EXPECT_NE(error_of("- a\n- b\n").find("c.yaml:1: a configuration is a map of keys, but this file holds a list"),
            std::string::npos);
  EXPECT_NE(error_of("name: x\n---\nname: y\n").find("second document"), std::string::npos);
  EXPECT_NE(error_of("name: !!str 3\n").find("c.yaml:1: the tag"), std::string::npos);
  EXPECT_NE(error_of("[a, b]: 3\n").find("a key must be a word"), std::string::npos);
  EXPECT_NE(error_of("words: &a [x, *a]\n").find("an alias inside the value that it names"), std::string::npos);
  EXPECT_NE(error_of("name: x\nmodel.layers: 3\n").find("c.yaml:2: the key 'model.layers' is empty or contains a dot"),
            std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int k = 0; k < 9; ++k) bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_NE(error_of(bomb).find("aliases expand to more than"), std::string::npos);
}

TEST(Config, AliasesAndByteOrderMarksWork) {
  const Options o = read_as<Options>(Config::from_text("\xEF\xBB\xBFname: &n ~\nwords: [*n, b]\n"));
  EXPECT_EQ(o.name, "~");
  EXPECT_EQ(o.words, (std::vector<std::string>{"~", "b"}));
}

TEST(Config, SectionsCanBeReadAlone) {
  const Config config =
      Config::from_text("name: x\nother: 3\nmodel:\n  layers: 5\n  attention:\n    heads: 2\n", "c.yaml");
  EXPECT_EQ(read_as<ModelOptions>(config.section("model")).layers, 5);
  EXPECT_EQ(read_as<AttentionOptions>(config.section("model.attention")).heads, 2);
  EXPECT_EQ(read_as<AttentionOptions>(config.section("model").section("attention")).heads, 2);
  EXPECT_EQ(read_as<AttentionOptions>(config.section("absent")).heads, 4);
  EXPECT_TRUE(config.has("model.attention.heads"));
  EXPECT_FALSE(config.has("model.heads"));
  EXPECT_EQ(config.keys(), (std::vector<std::string>{"name", "other", "model"}));
  EXPECT_EQ(config.section("model").keys("attention"), (std::vector<std::string>{"heads"}));
  EXPECT_EQ(config.where("model.attention.heads"), "c.yaml:6");
  EXPECT_EQ(config.where("model.absent"), "c.yaml:3");
  EXPECT_EQ(error_from([&] { read_as<AttentionOptions>(config.section("model")); }),
            "c.yaml:4: unknown key 'model.layers'; allowed: type, heads, strides");
}

TEST(Config, ErrorsExitWithTwo) {
  try {
    Config::load("/nonexistent/x.yaml");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    EXPECT_STREQ(e.what(), "cannot read the configuration '/nonexistent/x.yaml': No such file or directory");
  }
}

}  // namespace
}  // namespace tactus
