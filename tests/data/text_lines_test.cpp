#include "data/text_lines.h"

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
