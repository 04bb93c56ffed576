// Arrays of tests/data/fixtures/arrays.npz were written by NumPy; their values are formulas of the indices.
#include "data/matrix/npy.h"

#include "data/matrix/zip.h"
#include "tests/data/matrix/matrix_test_util.h"

namespace tactus::matrix_test {
namespace {

using matrix::ZipMember;

class NpyTest : public MatrixTest {
 protected:
  std::string complaint(const std::string& bytes) const { return MatrixTest::complaint(MediaRef::Kind::npy, bytes); }
};

float value_2d(const std::string& name, int64_t t, int64_t d) {
  const double integer = static_cast<double>(t * 40 + d * 7) - (contains(name, "u1") ? 0 : 30);
  const bool whole = contains(name, "i") || contains(name, "u");
  return static_cast<float>(whole ? integer : integer + 0.25 * static_cast<double>(d));
}

TEST_F(NpyTest, EveryTypeByteOrderAndLayout) {
  const std::string path = fixture("arrays.npz");
  int plain = 0, layered = 0;
  for (const ZipMember& member : matrix::list_zip(path)) {
    SCOPED_TRACE(member.name);
    const FeatureMatrix m = read_feature_matrix(media_of(MediaRef::Kind::npy, path, member.offset, member.bytes));
    ASSERT_EQ(m.rows, 3);
    ASSERT_EQ(m.width, 4);
    if (member.name.starts_with("3_")) {
      ++layered;
      ASSERT_EQ(m.layers, 2);
      ASSERT_EQ(m.values.size(), 24u);
      for (int64_t i = 0; i < 24; ++i) {
        EXPECT_EQ(m.values[static_cast<size_t>(i)], static_cast<float>(i / 8 * 100 + i / 4 % 2 * 10 + i % 4)) << i;
      }
    } else {
      ++plain;
      // "be_" and "le_" hold no letter of a type name; "v2.npy" and "v3.npy" are floats.
      const std::string type = member.name.substr(0, member.name.size() - 4);
      ASSERT_EQ(m.layers, 1);
      ASSERT_EQ(m.values.size(), 12u);
      for (int64_t i = 0; i < 12; ++i) {
        EXPECT_EQ(m.values[static_cast<size_t>(i)], value_2d(type, i / 4, i % 4)) << i;
      }
    }
  }
  EXPECT_EQ(plain, 26);
  EXPECT_EQ(layered, 4);
}

TEST_F(NpyTest, PartsOfRecordingsInBothOrders) {
  const std::string path = fixture("arrays.npz");
  int parts = 0;
  for (const ZipMember& member : matrix::list_zip(path)) {
    SCOPED_TRACE(member.name);
    MediaRef media = media_of(MediaRef::Kind::npy, path, member.offset, member.bytes);
    const FeatureMatrix whole = read_feature_matrix(media);
    media.start_seconds = 0.01, media.duration_seconds = 0.01;
    const FeatureMatrix part = read_feature_matrix(media);
    ASSERT_EQ(part.rows, 1);
    const size_t row = static_cast<size_t>(whole.layers * whole.width);
    EXPECT_EQ(part.values, std::vector<float>(whole.values.begin() + static_cast<int64_t>(row),
                                              whole.values.begin() + static_cast<int64_t>(2 * row)));
    ++parts;
  }
  EXPECT_EQ(parts, 30);
}

TEST_F(NpyTest, LongMatricesAreConvertedInBlocks) {
  std::vector<double> values(30011);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) + 0.1;
  const std::string file = write("long.npy", npy_bytes(npy_header("<f8", "(30011, 1)"), packed(values)));
  const FeatureMatrix m = read_feature_matrix(media_of(MediaRef::Kind::npy, file));
  ASSERT_EQ(m.values.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(m.values[i], static_cast<float>(values[i])) << i;
}

TEST_F(NpyTest, HeadersWithOtherSpacesQuotesAndOrder) {
  const std::string data = packed(std::vector<float>{1, 2, 3, 4, 5, 6});
  for (const std::string& header :
       {std::string("{'shape':(3,2),'descr':'<f4','fortran_order':False}"),
        std::string("  { \"fortran_order\" : False ,  'shape' : ( 3 , 2 , ) , \"descr\": \"<f4\" , }     \n  "),
        npy_header("<f4", "(3L, 2L)")}) {
    const FeatureMatrix m = read_feature_matrix(media_of(MediaRef::Kind::npy, write("a.npy", npy_bytes(header, data))));
    EXPECT_EQ(m.rows, 3) << header;
    EXPECT_EQ(m.width, 2) << header;
    EXPECT_EQ(m.values, (std::vector<float>{1, 2, 3, 4, 5, 6})) << header;
  }
}

TEST_F(NpyTest, ArraysOneAfterTheOther) {
  const std::string first = npy_bytes(npy_header("<f4", "(1, 2)"), packed(std::vector<float>{1, 2}));
  const std::string second = npy_bytes(npy_header("<f4", "(1, 1)"), packed(std::vector<float>{3}));
  const std::string file = write("two.npy", first + second);
  const int64_t size = static_cast<int64_t>(first.size());
  EXPECT_EQ(read_feature_matrix(media_of(MediaRef::Kind::npy, file, 0)).values, (std::vector<float>{1, 2}));
  EXPECT_EQ(read_feature_matrix(media_of(MediaRef::Kind::npy, file, 0, size)).values, (std::vector<float>{1, 2}));
  EXPECT_EQ(read_feature_matrix(media_of(MediaRef::Kind::npy, file, size)).values, (std::vector<float>{3}));
  EXPECT_TRUE(contains(complaint(first + second), "takes 8 bytes, "));
}

TEST_F(NpyTest, WhatIsNoArray) {
  EXPECT_EQ(complaint("abc"), "holds 3 bytes, too few for a NumPy array");
  EXPECT_EQ(complaint("RIFF\xff\n and so on"),
            "is no NumPy array: begins with 'RIFF\\xff\\x0a', expected '\\x93NUMPY'");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\x04\x00\x01\x00\x00\x00", 12)),
            "NumPy file version 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\x01\x00\xff\xff{}", 12)),
            "NumPy header: claims 65535 bytes, 2 are there; it was cut short");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
            "NumPy header: claims 4294967295 bytes, 0 are there; it was cut short");
}

TEST_F(NpyTest, DamagedHeaders) {
  const std::string data = packed(std::vector<float>{1, 2});
  const std::string types = "; expected f2, f4, f8, i1, i2, i4 or u1; convert it, e.g. array.astype('<f4')";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "expected the dictionary's '{', found '[]\\x0a'"},
      {"{'descr' '<f4'}", "expected ':' after a key, found ''<f4'}\\x0a'"},
      {"{'descr': '<f4' 'shape': (1, 2)}", "expected ',' or '}', found ''shape': (1, 2)}\\x0a'"},
      {"{'kind': 3}", "unknown key 'kind'; expected descr, fortran_order and shape"},
      {"{descr: 3}", "expected a name in quotes, found 'descr: 3}\\x0a'"},
      {"{'descr", "expected a name in quotes, found ''descr\\x0a'"},
      {"{'descr': '<f4', 'descr': '<f4'}", "key 'descr' appears twice"},
      {"{'descr': '<f4', 'fortran_order': False}", "has no key 'shape'"},
      {"{'shape': (1, 2), 'fortran_order': False}", "has no key 'descr'"},
      {"{'shape': (1, 2), 'descr': '<f4'}", "has no key 'fortran_order'"},
      {npy_header("<f4", "(1, 2)") + " more", "expected nothing after '}', found 'more\\x0a'"},
      {npy_header("<f4", "(1, 2)", "0"), "fortran_order: expected True or False, found '0, 'shape': (1, 2), }\\x0a'"},
      {npy_header("<f4", "(-1, 2)"), "shape: expected a whole number, found '-1, 2), }\\x0a'"},
      {npy_header("<f4", "(99999999999999999999, 2)"),
       "shape: expected a whole number, found '99999999999999999999, 2), }\\x0a'"},
      {npy_header("<f4", "(1 2)"), "expected ',' or ')', found '2), }\\x0a'"},
      {npy_header("<f4", "2"), "expected a shape in parentheses, found '2, }\\x0a'"},
      {npy_header("<i8", "(1, 2)"), "numbers of type '<i8'" + types},
      {npy_header("|f4", "(1, 2)"), "numbers of type '|f4'" + types},
      {npy_header("f4", "(1, 2)"), "numbers of type 'f4'" + types},
      {npy_header("|O", "(1, 2)"), "numbers of type '|O'" + types},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "an array of structures" + types},
  };
  for (const auto& [header, expected] : cases)
    EXPECT_EQ(complaint(npy_bytes(header, data)), "NumPy header: " + expected);
}

TEST_F(NpyTest, ShapesThatDoNotFit) {
  auto of_shape = [&](const std::string& shape) {
    return complaint(npy_bytes(npy_header("<f4", shape), packed(std::vector<float>{1, 2})));
  };
  const std::string expected = ", expected (frames, width) or (frames, layers, width)";
  EXPECT_EQ(of_shape("(2,)"), "array of shape (2)" + expected);
  EXPECT_EQ(of_shape("()"), "array of shape ()" + expected);
  EXPECT_EQ(of_shape("(1, 1, 1, 2)"), "array of shape (1, 1, 1, 2)" + expected);
  EXPECT_EQ(of_shape("(0, 80)"), "array of shape (0, 80) holds no values");
  EXPECT_EQ(of_shape("(3, 1)"),
            "array of shape (3, 1) takes 12 bytes, 8 are there; the file is damaged or was cut short");
  EXPECT_EQ(of_shape("(1, 1)"),
            "array of shape (1, 1) takes 4 bytes, 8 are there; the file is damaged or was cut short");
  const std::string huge = " takes more than 2^63 bytes, 8 are there; the file is damaged or was cut short";
  EXPECT_EQ(of_shape("(4611686018427387904, 4)"), "array of shape (4611686018427387904, 4)" + huge);
  EXPECT_EQ(of_shape("(2, 4294967296, 4294967296)"), "array of shape (2, 4294967296, 4294967296)" + huge);
}

}  // namespace
}  // namespace tactus::matrix_test
