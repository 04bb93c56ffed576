#include "train/metrics/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tests/metrics/corpus.h"

namespace tactus::text {
namespace {

namespace fs = std::filesystem;
using tactus::testing::Lines;
using tactus::testing::message_of;

TEST(Utf8, FindsTheFirstMalformedByte) {
  const auto valid = std::string_view::npos;
  EXPECT_EQ(find_invalid_utf8("aß你🎉"), valid);
  EXPECT_EQ(find_invalid_utf8("\xF4\x8F\xBF\xBF"), valid);  // U+10FFFF
  EXPECT_EQ(find_invalid_utf8("ab\x80"), 2u);               // continuation without a lead
  EXPECT_EQ(find_invalid_utf8("a\xC3"), 1u);                // cut short
  EXPECT_EQ(find_invalid_utf8("\xC0\xAF"), 0u);             // overlong, two bytes
  EXPECT_EQ(find_invalid_utf8("\xE0\x80\xAF"), 0u);         // overlong, three bytes
  EXPECT_EQ(find_invalid_utf8("\xF0\x80\x80\xAF"), 0u);     // overlong, four bytes
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80"), 0u);         // surrogate
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u);     // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xE4\xBDx"), 0u);            // a letter where a continuation belongs
}

TEST(Utf8, DecodesAndEncodes) {
  const std::string s = "aß你🎉";
  const std::u32string points = decode_utf8(s);
  EXPECT_EQ(points, U"a\u00df\u4f60\U0001f389");
  std::string back;
  for (const char32_t c : points) append_utf8(back, c);
  EXPECT_EQ(back, s);
  EXPECT_THROW(decode_utf8("\xFF"), DataError);
}

TEST(Words, SplitAtUnicodeWhiteSpace) {
  const auto words = split_words("  a\t\u00a0bß \u3000 c\u200bd ");
  EXPECT_EQ(Lines(words.begin(), words.end()), (Lines{"a", "bß", "c\u200bd"}));
  EXPECT_TRUE(split_words(" \t ").empty());
  EXPECT_EQ(strip("\u3000 ü x\u00a0"), "ü x");
  EXPECT_EQ(strip_right(" x \n"), " x");
  EXPECT_EQ(strip(""), "");
}

// Expected values: str.lower() of Python 3.11 (Unicode 14).
TEST(Lowercase, AllOfUnicode) {
  const std::pair<const char*, const char*> cases[] = {
      {"STRASSE ÄÖÜ ẞ", "strasse äöü ß"},   {"ΟΔΟΣ ΣΟΦΟΣ Σ, ΑΣ.", "οδος σοφος σ, ας."},
      {"İSTANBUL I", "i̇stanbul i"},         {"ЖЁЛТЫЙ ǄABC ǅ", "жёлтый ǆabc ǆ"},
      {"ÀÉÎ Ⅳ Ⓐ ＡＢ 𐐀", "àéî ⅳ ⓐ ａｂ 𐐨"}, {"'Σ aΣ'b aΣ-b 1Σ", "'σ aσ'b aς-b 1σ"},
  };
  for (const auto& [input, expected] : cases) EXPECT_EQ(lowercase(input), expected);
}

class ReadLines : public ::testing::Test {
 protected:
  std::string write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_.string();
  }
  void TearDown() override { fs::remove(path_); }

  fs::path path_ = fs::temp_directory_path() / ("tactus_read_lines_" + std::to_string(::getpid()));
};

TEST_F(ReadLines, Rules) {
  EXPECT_EQ(read_lines(write("")), Lines{});
  EXPECT_EQ(read_lines(write("\n")), Lines{""});
  EXPECT_EQ(read_lines(write("a\nb")), (Lines{"a", "b"}));
  EXPECT_EQ(read_lines(write("a\nb\n")), (Lines{"a", "b"}));
  EXPECT_EQ(read_lines(write("a\n\nb\n\n")), (Lines{"a", "", "b", ""}));
  EXPECT_EQ(read_lines(write("\xEF\xBB\xBF"
                             "a\r\nb\r\n")),
            (Lines{"a", "b"}));
  // Neither a lone carriage return nor Unicode's own line ends split.
  EXPECT_EQ(read_lines(write("a\rb\u2028c\x0c"
                             "d\n")),
            Lines{"a\rb\u2028c\x0c"
                  "d"});
}

TEST_F(ReadLines, NamesFileAndLine) {
  const std::string path = write(
      "ok\nb\xE4"
      "d\n");
  EXPECT_EQ(message_of<DataError>([&] { read_lines(path); }),
            path + ":2: invalid UTF-8 at byte 2; convert the text to UTF-8");
  EXPECT_EQ(message_of<DataError>([&] { read_lines(path + ".none"); }),
            "cannot read " + path + ".none: No such file or directory");
  const std::string folder = fs::temp_directory_path().string();
  EXPECT_EQ(message_of<DataError>([&] { read_lines(folder); }), "cannot read " + folder + ": is a directory");
}

}  // namespace
}  // namespace tactus::text
