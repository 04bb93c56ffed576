#include "data/text/text_lines.h"

#include <sys/resource.h>

#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

class TextLines : public FolderTest {};

TEST_F(TextLines, OnlyLineFeedsSplit) {
  std::string file = write("a", "\xef\xbb\xbfone\r\ntwo\fhalf\xe2\x80\xa8more\n\n\rlast\r");
  EXPECT_EQ(read_lines(file), (std::vector<std::string>{"one", "two\fhalf\xe2\x80\xa8more", "", "\rlast"}));
  EXPECT_TRUE(read_lines(write("empty", "")).empty());
  EXPECT_TRUE(read_lines(write("mark", "\xef\xbb\xbf")).empty());
  EXPECT_EQ(read_lines(write("b", "x\n")), std::vector<std::string>{"x"});
  EXPECT_EQ(read_lines(write("c", "\n\n")), (std::vector<std::string>{"", ""}));
}

TEST_F(TextLines, LinesCrossBlocks) {
  std::vector<std::string> lines;
  std::string text;
  for (int i = 0; i < 700; ++i) {
    lines.push_back(std::string(static_cast<size_t>(i * 37 % 1500), static_cast<char>('a' + i % 26)));
    text += lines.back() + "\n";
  }
  EXPECT_EQ(read_lines(write("a", text)), lines);
}

TEST_F(TextLines, NulIsAnErrorWithItsLine) {
  std::string file = write("a", std::string("one\ntw\0o\n", 9));
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_lines(file); }), file + ":2: NUL"));
}

TEST_F(TextLines, InvalidUtf8IsAnErrorWithItsLine) {
  for (std::string bad : {"\xc3", "\xc3(", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80",
                          "\xf0\x80\x80\x80", "\xe0\x80\xaf"}) {
    std::string file = write("a", "fine\nfine\nx" + bad + "\nfine\n");
    EXPECT_TRUE(contains(message_of<DataError>([&] { read_lines(file); }), file + ":3: invalid UTF-8 at byte 2"));
  }
  for (std::string good : {"ü", "€", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"})
    EXPECT_EQ(first_invalid_utf8("a" + good + "b"), -1);
}

TEST_F(TextLines, OverlongLinesAreRefused) {
  std::string longest(static_cast<size_t>(kMaxLineBytes), 'x');
  EXPECT_EQ(read_lines(write("a", "1\n" + longest + "\n3")).size(), 3u);
  for (std::string text : {"1\n" + longest + "x\n3", "1\n" + longest + "x", "1\n" + longest + longest}) {
    std::string file = write("b", text);
    EXPECT_TRUE(contains(message_of<DataError>([&] { read_lines(file); }), file + ":2: line is longer"));
  }
}

/// A file with lone carriage returns is one line of 100 MB: refused at once, without reading it into memory.
TEST_F(TextLines, AGiantLineIsRefusedCheaply) {
  const std::string file = path("giant");
  std::ofstream(file).close();
  std::filesystem::resize_file(file, 100 << 20);
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    const std::string lines(1 << 20, '\r');
    for (int i = 0; i < 3; ++i) out << lines;
  }
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_lines(file); }), file + ":1: line is longer"));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 16 << 10) << "KiB";
}

/// Each maximal part of a broken sequence becomes one replacement character (Unicode 15, table 3-8).
TEST(InvalidUtf8, IsReplacedByParts) {
  const std::string r = "\xef\xbf\xbd";
  const std::pair<std::string, std::string> cases[] = {
      {"a\xff"
       "b",
       "a" + r + "b"},
      {"\xe2\x82", r},
      {"\xe2\x82"
       "x",
       r + "x"},
      {"\xf0\x9f\x98"
       "x",
       r + "x"},
      {"\xc0\xaf", r + r},
      {"\xed\xa0\x80", r + r + r},
      {"\xe2\xe2\x82\xac", r + "\xe2\x82\xac"},
      {"fine \xc3\xa4", "fine \xc3\xa4"},
  };
  for (const auto& [in, out] : cases) {
    int64_t replaced = 0;
    EXPECT_EQ(with_invalid_utf8_replaced(in, replaced), out);
    EXPECT_EQ(first_invalid_utf8(out), -1);
    EXPECT_EQ(replaced > 0, in != out);
  }
}

TEST_F(TextLines, CountsLinesAsTheReaderDoes) {
  for (const std::string text : {"", "\n", "a", "a\n", "a\nb", "\n\nx\r\n"}) {
    const std::string file = write("a", text);
    EXPECT_EQ(count_lines(file), static_cast<int64_t>(read_lines(file).size())) << text;
  }
  EXPECT_EQ(count_lines(write("a", "12345"), 4), -1);
}

TEST_F(TextLines, MissingFilesAndFoldersAreErrors) {
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_lines(path("no")); }), path("no")));
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_lines(folder_.string()); }), "folder"));
}

TEST(SplitTabs, KeepsEmptyFields) {
  EXPECT_EQ(split_tabs("a\t\tb\t"), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split_tabs(""), std::vector<std::string_view>{""});
}

}  // namespace
}  // namespace tactus
