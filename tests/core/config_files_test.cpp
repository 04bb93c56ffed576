// Configurations from several files, overrides, and what options write about themselves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/core/config_fixture.h"

namespace tactus {
namespace {

class ConfigFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "tactus_config_" + info->name() + "_" + std::to_string(getpid()) + "/";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + name).parent_path());
    std::ofstream(folder_ + name) << text;
    return folder_ + name;
  }
  std::string error(const std::string& file, const std::vector<std::string>& set = {}) const {
    std::string message = error_from([&] { read_as<Options>(Config::load(file, set)); });
    for (size_t i; (i = message.find(folder_)) != std::string::npos;) message.erase(i, folder_.size());
    return message;
  }

  std::string folder_;
};

TEST_F(ConfigFiles, BaseMergesMapsAndReplacesTheRest) {
  write("shared/base.yaml",
        "name: base\nrates: [1, 2]\nmodel:\n  layers: 7\n  attention:\n    type: mha\n    heads: 8\n");
  const std::string file =
      write("own.yaml", "base: shared/base.yaml\nrates: [3]\nmodel:\n  attention:\n    heads: 2\n  causal: false\n");
  const Config config = Config::load(file);
  const Options o = read_as<Options>(config);
  EXPECT_EQ(o.name, "base");
  EXPECT_EQ(o.rates, (std::vector<double>{3}));
  EXPECT_EQ(o.model.layers, 7);
  EXPECT_EQ(o.model.attention.type, "mha");
  EXPECT_EQ(o.model.attention.heads, 2);
  EXPECT_FALSE(o.model.causal);
  EXPECT_EQ(config.where("model.layers"), folder_ + "shared/base.yaml:4");
  EXPECT_EQ(config.where("model.attention.heads"), file + ":5");
  EXPECT_FALSE(config.has("base"));
}

TEST_F(ConfigFiles, AHeadingWithoutKeysKeepsTheBase) {
  write("base.yaml", "name: x\nmodel:\n  layers: 7\n");
  EXPECT_EQ(read_as<Options>(Config::load(write("own.yaml", "base: base.yaml\nmodel:\n"))).model.layers, 7);
}

TEST_F(ConfigFiles, LaterBasesWinAndBasesNest) {
  write("a.yaml", "name: a\nmodel: {layers: 3, dropout: 0.3}\n");
  write("b.yaml", "base: c/c.yaml\nmodel: {layers: 4}\n");
  write("c/c.yaml", "base: ../a.yaml\nname: c\nwords: [c]\n");
  const Options o = read_as<Options>(Config::load(write("own.yaml", "base: [a.yaml, b.yaml]\n")));
  EXPECT_EQ(o.name, "c");
  EXPECT_EQ(o.model.layers, 4);
  EXPECT_EQ(o.model.dropout, 0.3);
  EXPECT_EQ(o.words, (std::vector<std::string>{"c"}));
}

TEST_F(ConfigFiles, ErrorsAfterAMergeNameTheFileAndLineOfTheValue) {
  write("base.yaml", "name: x\nmodel:\n  layers: 500\n  dropot: 1\n");
  EXPECT_EQ(error(write("own.yaml", "base: base.yaml\nmodel:\n  causal: true\n")),
            "base.yaml:3: 'model.layers' must be in [1, 200], got '500'");
  EXPECT_EQ(error(write("own.yaml", "base: base.yaml\n\nmodel:\n  layers: 3\n")),
            "base.yaml:4: unknown key 'model.dropot'; did you mean 'model.dropout'? allowed: layers, dropout, causal, "
            "attention");
  EXPECT_EQ(error(write("own.yaml", "base: base.yaml\n\nmodel:\n  layers: 0\n")),
            "own.yaml:4: 'model.layers' must be in [1, 200], got '0'");
}

TEST_F(ConfigFiles, BaseFaults) {
  write("loop.yaml", "base: own.yaml\n");
  EXPECT_EQ(error(write("own.yaml", "name: x\nbase: loop.yaml\n")),
            "loop.yaml:1: base: 'own.yaml' includes itself through its base files");
  EXPECT_EQ(error(write("own.yaml", "base: own.yaml\n")),
            "own.yaml:1: base: 'own.yaml' includes itself through its base files");
  EXPECT_EQ(error(write("own.yaml", "name: x\nbase: [gone.yaml]\n")),
            "own.yaml:2: base: cannot read the configuration 'gone.yaml': No such file or directory");
  EXPECT_EQ(error(write("own.yaml", "base: {a: b}\n")),
            "own.yaml:1: 'base' must be a file name or a list of file names, got a map");
  EXPECT_EQ(error(write("own.yaml", "base: .\n")).substr(0, 18), "own.yaml:1: base: ");
  write("broken.yaml", "name: x\nmodel: [\n");
  EXPECT_EQ(error(write("own.yaml", "base: broken.yaml\n")).rfind("broken.yaml:", 0), 0u);
}

TEST_F(ConfigFiles, SameBaseTwiceIsNoCycle) {
  write("a.yaml", "name: a\n");
  write("b.yaml", "base: a.yaml\nwords: [b]\n");
  EXPECT_EQ(read_as<Options>(Config::load(write("own.yaml", "base: [b.yaml, a.yaml]\n"))).name, "a");
}

TEST_F(ConfigFiles, SetOverridesFilesAndLaterSetsWin) {
  write("base.yaml", "name: base\nmodel:\n  layers: 3\n");
  const std::string file = write("own.yaml", "base: base.yaml\nmodel:\n  layers: 4\n");
  const std::vector<std::string> set = {"model.layers=5", "model.attention.heads=16", "name=a=b",    "words=[n, 'x y']",
                                        "model.layers=6", "sets.dev.path=~",          "rates=[1e-3]"};
  const Config config = Config::load(file, set);
  const Options o = read_as<Options>(config);
  EXPECT_EQ(o.model.layers, 6);
  EXPECT_EQ(o.model.attention.heads, 16);
  EXPECT_EQ(o.name, "a=b");
  EXPECT_EQ(o.words, (std::vector<std::string>{"n", "x y"}));
  EXPECT_EQ(o.rates, (std::vector<double>{1e-3}));
  ASSERT_EQ(o.sets.size(), 1u);
  EXPECT_EQ(o.sets[0].second.path, "~");
  EXPECT_EQ(config.where("model.layers"), "--set model.layers=6");
  EXPECT_EQ(read_as<Options>(Config::load(file, {"name="})).name, "");
  EXPECT_EQ(read_as<Options>(Config::load(file, {"model={layers: 9}"})).model.layers, 9);
}

TEST_F(ConfigFiles, SetFaultsNameTheSetting) {
  const std::string file = write("own.yaml", "name: x\nmodel:\n  layers: 4\n");
  EXPECT_EQ(
      error(file, {"model.layrs=3"}),
      "--set model.layrs=3: unknown key 'model.layrs'; did you mean 'model.layers'? allowed: layers, dropout, causal, "
      "attention");
  EXPECT_EQ(
      error(file, {"modle.layers=3"}),
      "--set modle.layers=3: unknown key 'modle'; did you mean 'model'? allowed: name, model, rates, words, sets");
  EXPECT_EQ(error(file, {"model.layers=big"}), "--set model.layers=big: 'model.layers' must be an integer, got 'big'");
  EXPECT_EQ(error(file, {"model=3"}), "--set model=3: 'model' must be a map of keys, got '3'");
  EXPECT_EQ(error(file, {"name.x=3"}), "--set name.x=3: 'name' must be a string, got a map");
  EXPECT_EQ(error(file, {"model"}), "--set model: expected key=value");
  EXPECT_EQ(error(file, {"=3"}), "--set =3: expected key=value");
  EXPECT_EQ(error(file, {"base=x.yaml"}), "--set base=x.yaml: 'base' can be given in files only");
  for (const char* hole : {"model..layers=3", ".name=3", "name.=3"})
    EXPECT_NE(error(file, {hole}).find(": the key '' is empty"), std::string::npos)
        << hole << " -> " << error(file, {hole});
  EXPECT_EQ(error(file, {"words=[a"}).rfind("--set words=[a: YAML syntax error", 0), 0u) << error(file, {"words=[a"});
}

Options unusual() {
  Options o;
  o.name = "line\nbreak \"quoted\" back\\slash \t \x01 ü #: - {x}";
  o.name += '\0';
  o.model.layers = 199;
  o.model.dropout = 0.1 + 0.2;
  o.model.causal = false;
  o.model.attention.strides = {};
  o.rates = {1, 1e-300, 5e-324, 1.7976931348623157e308, -0.0, 123456789.125, INFINITY, -INFINITY};
  o.words = {"",   "n",    "Yes", "~",     "null", "1e3",      "010", "0x10",  ".5",       "-",  "--x", "a, b",
             "[x", "a: b", "#c",  "plain", "a b ", "/a/b.txt", "'",   "\"",    "!t",       "&a", "*a",  "%",
             "@",  "`",    "|",   ">",     "?",    "...",      "---", "übung", "12:30:00", "+1", "="};
  o.sets = {{"train", {"a.h5", 3}}, {"on", {"", 0}}, {"12", {"x", 1}}, {"with space", {"y", 2}}};
  return o;
}

void expect_round_trip(const Options& o) {
  const std::string yaml = dump_yaml(o);
  const Config config = Config::from_text(yaml);
  const Options back = read_as<Options>(config);
  EXPECT_EQ(back, o) << yaml;
  EXPECT_EQ(dump_yaml(back), yaml);
  EXPECT_EQ(read_as<Options>(Config::from_text(config.to_yaml())), o) << config.to_yaml();
}

TEST(ConfigDump, LoadsBackEqual) {
  const Options defaults;
  expect_round_trip(defaults);
  expect_round_trip(unusual());
}

TEST(ConfigDump, ListsEveryKeyWithItsDefault) {
  Options o;
  o.name = "x";
  o.sets = {{"dev", {"d.h5", 1}}};
  EXPECT_EQ(dump_yaml(o), R"(name: x
model:
  layers: 2
  dropout: 0.1
  causal: true
  attention:
    type: mtla
    heads: 4
    strides: [2]
rates: [0.1]
words: []
sets:
  dev:
    path: d.h5
    limit: 1
)");
}

TEST(ConfigDump, NotANumberIsRefused) {
  Options o;
  o.rates = {1, NAN};
  o.model.dropout = NAN;
  EXPECT_THROW(dump_yaml(o), Error);
  o.model.dropout = 0;
  EXPECT_THROW(dump_yaml(o), Error);
}

TEST(ConfigDump, MergedTreeKeepsNestedListsAndHeadings) {
  const std::string yaml = "rows:\n  -\n    a: 1\n    b: [x, [y, \"3\"]]\n  - ~\nempty: {}\nnothing: ~\nflag: on\n";
  const std::string once = Config::from_text(yaml).to_yaml();
  EXPECT_EQ(Config::from_text(once).to_yaml(), once);
  EXPECT_EQ(once, yaml);
}

TEST(ConfigExplain, ListsTypeUnitDefaultAndRange) {
  const std::vector<KeyDoc> docs = explain<Options>();
  const auto find = [&](const std::string& key) {
    for (const KeyDoc& d : docs)
      if (d.key == key) return d;
    ADD_FAILURE() << key << " is not explained";
    return KeyDoc{};
  };
  EXPECT_EQ(find("name").default_value, "required");
  EXPECT_TRUE(find("model").is_section);
  EXPECT_EQ(find("model").doc, "The network");
  EXPECT_EQ(find("model.layers").type, "integer");
  EXPECT_EQ(find("model.layers").range, "[1, 200]");
  EXPECT_EQ(find("model.layers").default_value, "2");
  EXPECT_EQ(find("model.dropout").type, "number");
  EXPECT_EQ(find("model.dropout").default_value, "0.1");
  EXPECT_EQ(find("model.causal").default_value, "true");
  EXPECT_EQ(find("model.attention.type").range, "mha | mla | mtla");
  EXPECT_EQ(find("model.attention.strides").type, "list of integers");
  EXPECT_EQ(find("model.attention.strides").default_value, "[2]");
  EXPECT_EQ(find("model.attention.strides").range, ">= 1");
  EXPECT_EQ(find("rates").unit, "1/s");
  EXPECT_EQ(find("words").default_value, "[]");
  EXPECT_EQ(find("sets.NAME.limit").unit, "utterances");
  EXPECT_EQ(find("sets.NAME.path").default_value, "required");
  EXPECT_EQ(docs.size(), 15u);
}

TEST(ConfigHash, FollowsTheValuesAlone) {
  EXPECT_EQ(text_hash(""), "cbf29ce484222325");
  EXPECT_EQ(text_hash("a"), "af63dc4c8601ec8c");
  Options a = read_as<Options>(Config::from_text("name: x\nmodel: {layers: 2}\n"));
  Options b = read_as<Options>(Config::from_text("# other text\nname: \"x\"\n"));
  EXPECT_EQ(options_hash(a), options_hash(b));
  b.model.attention.heads = 5;
  EXPECT_NE(options_hash(a), options_hash(b));
}

}  // namespace
}  // namespace tactus
