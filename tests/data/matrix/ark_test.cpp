// tests/data/fixtures/matrices.ark and the values of its compressed matrices below were computed from the definition of
// the formats by a separate program, with NumPy.
#include "data/matrix/ark.h"

#include "tests/data/matrix/matrix_test_util.h"

namespace tactus::matrix_test {
namespace {

using matrix::ArkEntry;
using matrix::ArkReader;

const std::vector<float> kFloat = {0x1.468c0cp+3f,  -0x1.98e80ap+3f, 0x1.0b955p+1f,   -0x1.6b5f6p+1f,  -0x1.21b21p+1f,
                                   -0x1.13f6ep+0f,  -0x1.4332a2p+3f, -0x1.28df9ap+0f, -0x1.14de42p+2f, 0x1.09d708p+4f,
                                   0x1.2101c2p+0f,  -0x1.c35e1p+0f,  -0x1.680c42p+0f, -0x1.ab8cb6p+1f, -0x1.51a5eep+2f,
                                   -0x1.f439aap+0f, 0x1.3471eep+1f,  -0x1.31593ep+0f};
const std::vector<float> kQuartiles = {
    -0x1.cp+1f,      -0x1.bc015cp+1f, 0x1.57072cp+1f,  0x1.1b838cp+3f, 0x1.e1455ap+3f,  0x1.71455p+2f,
    -0x1.b61cb6p+1f, 0x1.7244fap+2f,  0x1.894946p+1f,  0x1.5dde6p+0f,  -0x1.bc066cp+1f, 0x1.6e21cep+2f,
    0x1.c3cb44p+1f,  -0x1.bc0a6p+1f,  -0x1.f47c74p+0f, 0x1.0cp+4f,     0x1.dca4c4p+3f,  0x1.570716p+1f};
const std::vector<float> kTwoBytes = {-0x1.cp+1f,      0x1.0cp+4f,      -0x1.b5dff6p+1f, 0x1.36b6d8p+1f, 0x1.f051fp+3f,
                                      -0x1.bc29dcp+1f, -0x1.f15272p+0f, 0x1.03670cp+4f,  0x1.f3a474p+3f, 0x1.457784p+1f,
                                      -0x1.5c376p-1f,  0x1.6dd94cp+1f,  -0x1.504e9p+1f,  0x1.d1d5f8p+3f, 0x1.3d68cep+3f,
                                      0x1.0b3064p+3f,  0x1.7469b8p+0f,  0x1.82cfd4p+2f};
const std::vector<float> kOneByte = {-0x1.cp+1f,     0x1.0cp+4f,     -0x1.b5d5d6p+1f, -0x1.78d8d8p+1f, 0x1.a9697p+0f,
                                     0x1.59696ap+3f, 0x1.c3f3f4p+2f, 0x1.02d2d4p+2f,  0x1.951518p+0f,  -0x1.ac6c6cp+0f,
                                     0x1.19e1e2p+3f, 0x1.3d7576p+3f, 0x1.c3f3f4p+2f,  0x1.ecccdp+3f,   0x1.ea4244p+3f,
                                     0x1.6aeafp-1f,  0x1.19e1e2p+3f, 0x1.292122p+3f};

class ArkTest : public MatrixTest {
 protected:
  std::string complaint(const std::string& bytes) const { return MatrixTest::complaint(MediaRef::Kind::ark, bytes); }
  std::string list_complaint(const std::string& bytes) const {
    const std::string file = write("bad.ark", bytes);
    const std::string message = message_of<DataError>([&] { list(file); });
    EXPECT_EQ(message.find(file + ": "), 0u) << message;
    return message.substr(std::min(message.size(), file.size() + 2));
  }
  static std::vector<ArkEntry> list(const std::string& path) {
    std::vector<ArkEntry> entries;
    ArkReader reader(path);
    for (ArkEntry entry; reader.next(entry);) entries.push_back(entry);
    return entries;
  }
};

std::string sized(int32_t value) { return "\4" + packed(value); }
std::string binary(const std::string& rest) { return std::string("\0B", 2) + rest; }
std::string compressed(const std::string& type, float min, float range, int32_t rows, int32_t width,
                       const std::string& data) {
  return binary(type + " ") + packed(min) + packed(range) + packed(rows) + packed(width) + data;
}

TEST_F(ArkTest, EveryBinaryType) {
  const std::string path = fixture("matrices.ark");
  const std::vector<ArkEntry> entries = list(path);
  ASSERT_EQ(entries.size(), 5u);
  std::vector<float> eighths(18);
  for (size_t i = 0; i < 18; ++i) eighths[i] = static_cast<float>(i) / 8;
  const std::vector<std::pair<std::string, std::vector<float>>> expected = {
      {"float", kFloat}, {"double", eighths}, {"cm", kQuartiles}, {"cm2", kTwoBytes}, {"cm3", kOneByte}};
  for (size_t i = 0; i < entries.size(); ++i) {
    SCOPED_TRACE(expected[i].first);
    EXPECT_EQ(entries[i].key, expected[i].first);
    EXPECT_EQ(entries[i].rows, 6);
    EXPECT_EQ(entries[i].width, 3);
    MediaRef media = media_of(MediaRef::Kind::ark, path, entries[i].offset);
    const FeatureMatrix m = read_feature_matrix(media);
    EXPECT_EQ(m.rows, 6);
    EXPECT_EQ(m.layers, 1);
    EXPECT_EQ(m.width, 3);
    EXPECT_EQ(m.values, expected[i].second);
    media.bytes = entries[i].bytes;
    EXPECT_EQ(read_feature_matrix(media).values, expected[i].second);
    media.start_seconds = 0.2, media.duration_seconds = 0.3;
    const FeatureMatrix part = read_feature_matrix(media, 10);
    EXPECT_EQ(part.rows, 3);
    EXPECT_EQ(part.values, std::vector<float>(m.values.begin() + 6, m.values.begin() + 15));
    media.bytes -= 1;
    EXPECT_TRUE(contains(message_of<DataError>([&] { read_feature_matrix(media); }), "cut short"));
  }
}

TEST_F(ArkTest, CompressedRangesMeetAtTheQuartiles) {
  const std::vector<uint16_t> header = {0, 1000, 3000, 65535};
  const std::string codes = {'\0', '\x40', '\xc0', '\xff'};
  const std::string file = write("m", compressed("CM", -1, 65535, 4, 1, packed(header) + codes));
  const FeatureMatrix m = read_feature_matrix(media_of(MediaRef::Kind::ark, file));
  ASSERT_EQ(m.values.size(), 4u);
  EXPECT_FLOAT_EQ(m.values[0], -1);
  EXPECT_FLOAT_EQ(m.values[1], 999);
  EXPECT_FLOAT_EQ(m.values[2], 2999);
  EXPECT_FLOAT_EQ(m.values[3], 65534);
}

TEST_F(ArkTest, TextArchives) {
  const std::string file =
      write("t.ark", "a  [\n  1 -2.5 +3 \n  4e1 5E-1 6 ]\nb [ 7 8 ]\r\n\xc3\xa9\t[ 1;2; 3]\nc [\n9\n]");
  const std::vector<ArkEntry> entries = list(file);
  ASSERT_EQ(entries.size(), 4u);
  const std::vector<std::vector<float>> expected = {{1, -2.5f, 3, 40, 0.5f, 6}, {7, 8}, {1, 2, 3}, {9}};
  const std::vector<std::string> keys = {"a", "b", "\xc3\xa9", "c"};
  const std::vector<int64_t> rows = {2, 1, 3, 1};
  for (size_t i = 0; i < entries.size(); ++i) {
    SCOPED_TRACE(keys[i]);
    EXPECT_EQ(entries[i].key, keys[i]);
    EXPECT_EQ(entries[i].rows, rows[i]);
    EXPECT_EQ(entries[i].width, static_cast<int64_t>(expected[i].size()) / rows[i]);
    for (int64_t bytes : {int64_t{-1}, entries[i].bytes}) {
      const FeatureMatrix m = read_feature_matrix(media_of(MediaRef::Kind::ark, file, entries[i].offset, bytes));
      EXPECT_EQ(m.rows, rows[i]);
      EXPECT_EQ(m.values, expected[i]);
    }
  }
  MediaRef part = media_of(MediaRef::Kind::ark, file, entries[2].offset);
  part.start_seconds = 0.01, part.duration_seconds = 0.01;
  EXPECT_EQ(read_feature_matrix(part).values, std::vector<float>{2});
}

TEST_F(ArkTest, TextAndBinaryMixedAndBlocksCrossed) {
  std::string bytes;
  std::vector<float> values;
  for (int i = 0; i < 1500; ++i) {
    values.push_back(static_cast<float>(i) * 0.5f);
    bytes += (i == 0 ? "text [ " : i % 3 == 0 ? "\n" : " ") + std::to_string(values.back());
  }
  bytes += " ]\nbinary " + binary("FM " + sized(500) + sized(3)) + packed(values) + "last [ 1 ]\n";
  const std::vector<ArkEntry> entries = list(write("m.ark", bytes));
  ASSERT_EQ(entries.size(), 3u);
  for (size_t i = 0; i < 2; ++i) {
    const FeatureMatrix m = read_feature_matrix(media_of(MediaRef::Kind::ark, path("m.ark"), entries[i].offset));
    EXPECT_EQ(m.rows, 500);
    EXPECT_EQ(m.values, values);
  }
  EXPECT_EQ(entries[2].key, "last");
}

TEST_F(ArkTest, EmptyArchive) { EXPECT_TRUE(list(write("empty.ark", "")).empty()); }

TEST_F(ArkTest, DamagedBinary) {
  const std::string tail = std::string(12, '\0');
  EXPECT_EQ(complaint(std::string("\0A", 2) + tail),
            "byte 0 of the file: a zero byte without 'B' after it begins no matrix");
  EXPECT_EQ(complaint(binary("FV " + sized(3) + tail)),
            "byte 2 of the file: holds a vector ('FV'), expected a matrix of features");
  EXPECT_EQ(complaint(binary("DV " + sized(3) + tail)),
            "byte 2 of the file: holds a vector ('DV'), expected a matrix of features");
  EXPECT_EQ(complaint(binary("CM4 " + tail)),
            "byte 2 of the file: unknown type 'CM4', expected FM, DM, CM, CM2 or CM3");
  EXPECT_EQ(complaint(binary("<Nnet> ")), "byte 2 of the file: unknown type '<Nne', expected FM, DM, CM, CM2 or CM3");
  EXPECT_EQ(complaint(binary("FM")), "byte 2 of the file: the data ends inside the matrix's type; it was cut short");
  EXPECT_EQ(complaint(binary("FM " + sized(3) + "\4")),
            "byte 11 of the file: the data ends inside the matrix's header; it was cut short");
  EXPECT_EQ(complaint(binary("CM " + tail)),
            "byte 17 of the file: the data ends inside the matrix's header; it was cut short");
  EXPECT_EQ(complaint(binary("FM \x08" + tail)), "byte 5 of the file: expected the byte 4 before a size, found 8");
  EXPECT_EQ(complaint(binary("FM " + sized(-1) + sized(3) + tail)),
            "byte 2 of the file: matrix of -1 x 3 values; damaged");
  EXPECT_EQ(complaint(binary("FM " + sized(0) + sized(3))), "byte 2 of the file: matrix of 0 x 3 holds no values");
  EXPECT_EQ(complaint(compressed("CM", 0, 0, 0, 0, "")), "byte 2 of the file: matrix of 0 x 0 holds no values");
  const std::string short_of = " bytes, 12 are there; the file is damaged or was cut short";
  EXPECT_EQ(complaint(binary("FM " + sized(2) + sized(2) + tail)),
            "byte 2 of the file: matrix of 2 x 2 values takes 16" + short_of);
  EXPECT_EQ(complaint(binary("DM " + sized(1) + sized(2) + tail)),
            "byte 2 of the file: matrix of 1 x 2 values takes 16" + short_of);
  EXPECT_EQ(complaint(compressed("CM", 0, 1, 5, 1, tail)),
            "byte 2 of the file: matrix of 5 x 1 values takes 13" + short_of);
  EXPECT_EQ(complaint(compressed("CM2", 0, 1, 7, 1, tail)),
            "byte 2 of the file: matrix of 7 x 1 values takes 14" + short_of);
  EXPECT_EQ(complaint(compressed("CM3", 0, 1, 13, 1, tail)),
            "byte 2 of the file: matrix of 13 x 1 values takes 13" + short_of);
  EXPECT_EQ(complaint(binary("DM " + sized(0x7fffffff) + sized(0x7fffffff) + tail)),
            "byte 2 of the file: matrix of 2147483647 x 2147483647 values takes more than 2^63" + short_of);
}

TEST_F(ArkTest, DamagedText) {
  EXPECT_EQ(complaint("utt1 [ 1 2 ]\n"),
            "byte 0 of the file: expected a matrix ('[' or a zero byte and 'B'), found 'utt1 [ 1 2 ]\\x0a'; the offset "
            "must be that of an .scp file, the first byte after the key");
  EXPECT_TRUE(contains(complaint(""), "found ''"));
  EXPECT_EQ(complaint("[ ]"), "byte 0 of the file: matrix holds no values");
  EXPECT_EQ(complaint("[ 1 2"),
            "byte 5 of the file: the data ends inside a matrix, ']' was expected; it was cut short");
  EXPECT_EQ(complaint("[ 1 2\n 3 ]"), "byte 9 of the file: row 1 has 1 values, the rows before have 2");
  EXPECT_EQ(complaint("[ 1 2\n 3 4,5 ]"), "byte 9 of the file: '4,5' (row 1, column 1) is not a number");
  EXPECT_EQ(complaint("[ +-1 ]"), "byte 2 of the file: '+-1' (row 0, column 0) is not a number");
  EXPECT_EQ(complaint("[ " + std::string(100, '1') + " ]"),
            "byte 2 of the file: '" + std::string(60, '1') + "...' (row 0, column 0) is not a number");
  EXPECT_EQ(complaint("[ 1 inf ]"), "row 0, column 1 (from 0) is not a finite 32-bit number");
}

TEST_F(ArkTest, DamagedArchives) {
  EXPECT_EQ(list_complaint("key"), "byte 0 of the file: the file ends after the key 'key'; it was cut short");
  EXPECT_EQ(list_complaint("a [ 1 ]\nk\n[ 1 ]"),
            "byte 8 of the file: expected a key and a space, found 'k\\x0a'; the file is damaged or no Kaldi archive");
  EXPECT_EQ(list_complaint("\xff\xfe [ 1 ]"), "byte 0 of the file: key '\\xff\\xfe' is not UTF-8");
  EXPECT_TRUE(contains(list_complaint(std::string(5000, 'k')), "kkk...'; the file is damaged or no Kaldi archive"));
  EXPECT_TRUE(contains(list_complaint("a " + binary("FV " + sized(0))), "byte 4 of the file: holds a vector ('FV')"));
  EXPECT_TRUE(
      contains(list_complaint("a " + binary("FM " + sized(1) + sized(1)) + "123"), "takes 4 bytes, 3 are there"));
}

}  // namespace
}  // namespace tactus::matrix_test
