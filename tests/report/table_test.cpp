#include "train/report/table.h"

#include <gtest/gtest.h>

#include "core/files/json.h"
#include "train/report/text_baseline.h"

namespace tactus {
namespace {

Table example() {
  Table t;
  t.title = "Two <rows>";
  t.columns = {{"bleu", "BLEU", 2, false}, {"seconds", "s", 1, true}};
  t.rows = {{"first", {{"bleu", 50.126}, {"seconds", 10}}}, {"second", {{"seconds", 4}}}};
  return t;
}

TEST(Table, TextAlignsColumnsAndPrintsRatiosToTheFirstRow) {
  const std::string text = example().to_text();
  EXPECT_NE(text.find("first   50.13  10.0 (1.00x)"), std::string::npos) << text;
  EXPECT_NE(text.find("second      -   4.0 (2.50x)"), std::string::npos) << text;
}

TEST(Table, MarkdownHasARuleBelowItsHead) {
  const std::string text = example().to_markdown();
  EXPECT_NE(text.find("|  | BLEU | s |\n|---|---:|---:|\n| first | 50.13 | 10.0 (1.00x) |\n"), std::string::npos)
      << text;
}

TEST(Table, HtmlEscapesText) {
  const std::string text = example().to_html();
  EXPECT_NE(text.find("<h1>Two &lt;rows&gt;</h1>"), std::string::npos);
  EXPECT_EQ(text.find("<rows>"), std::string::npos);
}

TEST(Table, JsonHoldsFullPrecisionAndOnlyWhatIsKnown) {
  const Json json = parse_json(example().to_json());
  const auto& rows = json.at("rows").items();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("bleu").as_double(), 50.126);
  EXPECT_FALSE(rows[1].has("bleu"));
}

TEST(NearestNeighbour, TakesTheTextWithMostWordsAndPairsInCommon) {
  const std::vector<std::string_view> source = {"it is half past nine", "nine red lamps", "the train leaves at nine"};
  const std::vector<std::string_view> target = {"es ist halb zehn", "neun rote Lampen", "der Zug fährt um neun ab"};
  const auto got = nearest_neighbour_translations(source, target, {"it is half past ten", "red lamps", ""});
  EXPECT_EQ(got[0], target[0]);
  EXPECT_EQ(got[1], target[1]);
  EXPECT_EQ(got[2], target[0]);  // nothing in common with any: the first
}

TEST(NearestNeighbour, WithoutTrainingTextThereIsNothingToCopy) {
  EXPECT_EQ(nearest_neighbour_translations({}, {}, {"a"}), std::vector<std::string>{""});
}

}  // namespace
}  // namespace tactus
