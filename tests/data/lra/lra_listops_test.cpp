#include <cmath>
#include <map>
#include <set>

#include "data/lra/listops.h"
#include "data/text/text_lines.h"
#include "tests/data/lra/lra_test_util.h"

namespace tactus {
namespace {

class ListOps : public LraTest {};

struct Row {
  std::string source;
  int target, length;
};

/// Trees and values by the published evaluator.
std::vector<Row> samples() {
  std::vector<Row> rows;
  LineReader lines(TACTUS_SOURCE_DIR "/tests/data/fixtures/listops_samples.tsv");
  std::string line;
  lines.next(line);
  while (lines.next(line)) {
    const auto f = split_tabs(line);
    rows.push_back({std::string(f[0]), std::stoi(std::string(f[1])), std::stoi(std::string(f[2]))});
  }
  return rows;
}

TEST_F(ListOps, ValuesLengthsAndFormOfPublishedSamples) {
  const auto rows = samples();
  ASSERT_EQ(rows.size(), 40u);
  for (const Row& row : rows) {
    const ListOpsTokens tokens = parse_listops(row.source, "sample");
    EXPECT_EQ(listops_value(tokens), row.target) << row.source;
    EXPECT_EQ(static_cast<int>(tokens.size()), row.length) << row.source;
    EXPECT_EQ(listops_source(tokens), row.source);
    EXPECT_EQ(parse_listops(listops_words(tokens), "words"), tokens);
  }
}

TEST_F(ListOps, SmallTreesByHand) {
  const auto value = [](const std::string& text) { return listops_value(parse_listops(text, "tree")); };
  EXPECT_EQ(value("7"), 7);
  EXPECT_EQ(value("[MAX 2 9 ]"), 9);
  EXPECT_EQ(value("[MIN 2 [SM 9 9 ] 5 ]"), 2);
  EXPECT_EQ(value("[SM 9 9 9 ]"), 7);
  EXPECT_EQ(value("[MED 1 8 3 ]"), 3);
  EXPECT_EQ(value("[MED 1 8 3 4 ]"), 3);
  EXPECT_EQ(value("[MED 1 [MAX 4 6 ] ]"), 3);
  EXPECT_EQ(listops_source(parse_listops("[MAX 2 9 ]", "tree")), "( ( ( [MAX 2 ) 9 ) ] )");
  EXPECT_EQ(listops_source(parse_listops("5", "tree")), "5");
}

TEST_F(ListOps, BrokenTreesAreErrors) {
  for (const std::string text : {"", "[MAX 2 9", "2 9", "]", "[MAX ]", "[MAX 2 ] ]", "[MAX [MIN 2 ]"})
    expect_error<DataError>([&] { listops_value(parse_listops(text, "t")); }, {"ListOps tree"});
  expect_error<DataError>([&] { parse_listops("[MAX 2 12 ]", "f:3"); }, {"f:3", "'12'", "[MIN"});
}

/// Acceptance, lengths and labels against those of the published grammar (8.5 %; 1044 +- 394; 0 and 9 about 17 %).
TEST_F(ListOps, StatisticsOfTheGrammar) {
  const ListOpsOptions options;
  constexpr int64_t kCandidates = 12000;
  double kept = 0, sum = 0, squares = 0;
  std::map<int, double> labels;
  for (int64_t i = 0; i < kCandidates; ++i) {
    const auto tree = draw_listops(options, i);
    if (!tree) continue;
    ASSERT_GT(tree->size(), 500u);
    ASSERT_LT(tree->size(), 2000u);
    const auto length = static_cast<double>(tree->size());
    ++kept, sum += length, squares += length * length;
    ++labels[listops_value(*tree)];
  }
  EXPECT_NEAR(kept / kCandidates, 0.085, 0.008);
  EXPECT_NEAR(sum / kept, 1044, 40);
  EXPECT_NEAR(std::sqrt(squares / kept - sum / kept * (sum / kept)), 394, 30);
  EXPECT_NEAR((labels[0] + labels[9]) / kept, 0.35, 0.05);
  for (int digit = 1; digit < 9; ++digit) EXPECT_NEAR(labels[digit] / kept, 0.08, 0.04) << digit;
}

TEST_F(ListOps, FilesDoNotDependOnThreadsAndTreesDiffer) {
  ListOpsOptions options{.train = 300, .valid = 40, .test = 50, .min_length = 4, .max_length = 12, .max_depth = 3};
  for (const int64_t threads : {1, 3}) {
    std::filesystem::create_directories(path(std::to_string(threads)));
    options.threads = threads;
    generate_listops(options, path(std::to_string(threads)));
  }
  std::set<std::string> trees;
  for (const std::string name : {"basic_train.tsv", "basic_val.tsv", "basic_test.tsv", "listops.yaml"}) {
    const std::string text = read(path("1/" + name));
    EXPECT_EQ(text, read(path("3/" + name))) << name;
    if (name.ends_with("yaml")) continue;
    for (const std::string& line : read_lines(path("1/" + name))) trees.insert(line);
  }
  EXPECT_EQ(trees.size(), 1u + 300 + 40 + 50);
  options.seed = 2;
  generate_listops(options, path("3"));
  EXPECT_NE(read(path("1/basic_test.tsv")), read(path("3/basic_test.tsv")));
}

TEST_F(ListOps, ImpossibleLimitsAreErrors) {
  ListOpsOptions options{.train = 20, .valid = 0, .test = 0, .min_length = 0, .max_length = 2};
  expect_error<ConfigError>([&] { generate_listops(options, folder_.string()); }, {"found 10 of 20", "max_length"});
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  options.min_length = 5;
  expect_error<ConfigError>([&] { generate_listops(options, folder_.string()); }, {"min_length 5"});
}

TEST_F(ListOps, ReaderReadsWhatTheGeneratorWrites) {
  const ListOpsOptions options{.train = 30, .valid = 5, .test = 6, .min_length = 4, .max_length = 60, .max_depth = 4};
  generate_listops(options, folder_.string());
  std::set<std::string> sources;
  for (const auto& [split, count] :
       std::map<std::string, size_t>{{"train", 30}, {"valid", 5}, {"dev", 5}, {"test", 6}}) {
    const auto all = items(open_lra_listops, split);
    ASSERT_EQ(all.size(), count) << split;
    std::set<std::string> ids;
    for (const Item& item : all) {
      EXPECT_EQ(item.src_text.find('('), std::string::npos);
      EXPECT_EQ(std::to_string(listops_value(parse_listops(item.src_text, "item"))), item.tgt_text);
      sources.insert(item.src_text);
      ids.insert(item.id);
    }
    EXPECT_EQ(ids.size(), count);
  }
  EXPECT_EQ(sources.size(), 41u);
}

TEST_F(ListOps, ReaderFaults) {
  write("basic_train.tsv",
        "Source\tTarget\n( ( ( [MAX 2 ) 9 ) ] )\t9\n[MAX 2 x ]\t9\n[MAX 2 9 ]\tten\n[SM 1 2 ]\n4\t4\n");
  expect_error<DataError>([&] { items(open_lra_listops, "train"); }, {"basic_train.tsv:3", "'x'"});
  DropCounts drops;
  const auto all = items(open_lra_listops, "train", OnError::skip, &drops);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].src_text, "[MAX 2 9 ]");
  EXPECT_EQ(all[0].tgt_text, "9");
  EXPECT_EQ(all[1].src_text, "4");
  EXPECT_EQ(drops.at("bad_row").count, 3);
  EXPECT_EQ(drops.at("bad_row").ids, (std::vector<std::string>{"2", "3", "4"}));
  write("basic_val.tsv", "source,target\n");
  expect_error<DataError>([&] { items(open_lra_listops, "valid"); }, {"basic_val.tsv:1", "Source<tab>Target"});
  write("basic_val.tsv", "");
  expect_error<DataError>([&] { items(open_lra_listops, "valid"); }, {"basic_val.tsv", "empty"});
  expect_error<DataError>([&] { items(open_lra_listops, "test"); }, {"basic_test.tsv"});
  expect_error<ConfigError>([&] { items(open_lra_listops, "eval"); }, {"'eval'", "train, valid"});
  InputOptions odd = input("lra_listops");
  odd.source = "de";
  expect_error<ConfigError>([&] { open_lra_listops(odd, "train", OnError::stop); }, {"input.source", "'de'"});
}

}  // namespace
}  // namespace tactus
