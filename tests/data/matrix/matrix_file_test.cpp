#include "data/matrix_file.h"

#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/files/h5.h"
#include "data/matrix/ark.h"
#include "data/matrix/zip.h"
#include "tests/data/matrix/matrix_test_util.h"

namespace tactus::matrix_test {
namespace {

using Kind = MediaRef::Kind;

class MatrixFileTest : public MatrixTest {
 protected:
  static std::string message(const MediaRef& media, double frames_per_second = 100) {
    return message_of<DataError>([&] { read_feature_matrix(media, frames_per_second); });
  }
  /// A matrix of `rows` rows whose values are 0, 1, ...
  MediaRef counting(int64_t rows, int64_t width) const {
    std::vector<float> values(static_cast<size_t>(rows * width));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const std::string shape = "(" + std::to_string(rows) + ", " + std::to_string(width) + ")";
    return media_of(Kind::npy, write("counting.npy", npy_bytes(npy_header("<f4", shape), packed(values))));
  }
};

MediaRef dataset(const std::string& name, const std::string& path = fixture("matrices.h5")) {
  MediaRef media = media_of(Kind::hdf5, path);
  media.dataset = name;
  return media;
}

TEST_F(MatrixFileTest, Hdf5OfEveryType) {
  for (const std::string name : {"f2", "f4_be", "f8_be", "i1", "i2_be", "u1", "u4", "u8", "gzip"}) {
    SCOPED_TRACE(name);
    const FeatureMatrix m = read_feature_matrix(dataset(name));
    ASSERT_EQ(m.rows, 3);
    ASSERT_EQ(m.layers, 1);
    ASSERT_EQ(m.width, 4);
    const bool real = name[0] == 'f' || name == "gzip";
    for (int64_t i = 0; i < 12; ++i) {
      const float expected = static_cast<float>(i / 4 * 40 + i % 4 * 7) - (name[0] == 'u' ? 0.0f : 30.0f);
      EXPECT_EQ(m.values[static_cast<size_t>(i)], expected + (real ? 0.25f * static_cast<float>(i % 4) : 0.0f)) << i;
    }
  }
}

TEST_F(MatrixFileTest, Hdf5LayersAndParts) {
  MediaRef media = dataset("group/layers");
  const FeatureMatrix whole = read_feature_matrix(media);
  EXPECT_EQ(whole.rows, 3);
  EXPECT_EQ(whole.layers, 2);
  EXPECT_EQ(whole.width, 4);
  EXPECT_EQ(whole.values[23], 213);
  media.start_seconds = 0.1;
  const FeatureMatrix part = read_feature_matrix(media, 10);
  EXPECT_EQ(part.rows, 2);
  EXPECT_EQ(part.values, std::vector<float>(whole.values.begin() + 8, whole.values.end()));
}

TEST_F(MatrixFileTest, Hdf5Faults) {
  const std::string where = fixture("matrices.h5") + ":";
  const std::string expected = ", expected [frames, width] or [frames, layers, width]";
  EXPECT_EQ(message(dataset("")), fixture("matrices.h5") + ": no dataset is named; expected FILE:DATASET");
  EXPECT_EQ(message(dataset("absent")), where + " absent: no such object");
  EXPECT_EQ(message(dataset("group")), where + " group: is a group, expected a dataset");
  EXPECT_EQ(message(dataset("vector")), where + "vector: dataset of shape [3]" + expected);
  EXPECT_TRUE(contains(message(dataset("text")), where + " text: holds no numbers"));
  EXPECT_EQ(message(dataset("none")), where + "none: dataset of shape [0, 4] holds no values");
  EXPECT_TRUE(contains(message(dataset("huge")),
                       where + "huge: dataset of shape [1000000000, 80] does not fit into a file of "));
  EXPECT_EQ(message(dataset("nan")), where + "nan: row 1, column 2 (from 0) is not a finite 32-bit number");
  EXPECT_EQ(message(dataset("big")), where + "big: row 1, column 2 (from 0) is not a finite 32-bit number");
  EXPECT_TRUE(contains(message(dataset("a", write("a.h5", "no HDF5"))), "a.h5: not a readable HDF5 file"));
  const std::string whole = bytes_of(fixture("matrices.h5"));
  EXPECT_TRUE(contains(message(dataset("f2", write("cut.h5", whole.substr(0, whole.size() / 2)))), "cut.h5: "));
}

TEST_F(MatrixFileTest, PartsAreRoundedToRowsAndClipped) {
  MediaRef media = counting(100, 2);
  struct Case {
    double start, duration, rate;
    int64_t first, rows;
  };
  for (const Case& c : {Case{0, -1, 100, 0, 100}, Case{0.104, 0.05, 100, 10, 5}, Case{0.106, 0.05, 100, 11, 5},
                        Case{0.5, -1, 100, 50, 50}, Case{0.99, 7, 100, 99, 1}, Case{1, 1, 12.5, 13, 12},
                        Case{0, 1e300, 100, 0, 100}, Case{0, 0.3, 100, 0, 30}}) {
    SCOPED_TRACE(std::to_string(c.start) + "+" + std::to_string(c.duration));
    media.start_seconds = c.start, media.duration_seconds = c.duration;
    const FeatureMatrix m = read_feature_matrix(media, c.rate);
    EXPECT_EQ(m.rows, c.rows);
    ASSERT_EQ(m.values.size(), static_cast<size_t>(2 * c.rows));
    EXPECT_EQ(m.values.front(), static_cast<float>(2 * c.first));
    EXPECT_EQ(m.values.back(), static_cast<float>(2 * (c.first + c.rows) - 1));
  }
}

TEST_F(MatrixFileTest, PartsBeyondTheEnd) {
  MediaRef media = counting(100, 2);
  const std::string file = media.path;
  media.start_seconds = 1;
  EXPECT_EQ(message(media),
            file +
                ":1s to the end: the part begins beyond the matrix of 100 rows at 100 rows per second, which "
                "end at 1 s");
  media.start_seconds = 1e300;
  EXPECT_TRUE(contains(message(media), "begins beyond the matrix"));
  media.start_seconds = 0.5, media.duration_seconds = 0.004;
  EXPECT_TRUE(contains(message(media), ": the part holds no row of the 100 rows at 100 rows per second"));
  media.start_seconds = -1;
  EXPECT_TRUE(contains(message(media), "are no part of a recording"));
  media.start_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(contains(message(media), "are no part of a recording"));
  media.start_seconds = 0, media.duration_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(contains(message(media), "are no part of a recording"));
  media.duration_seconds = -1;
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { read_feature_matrix(media, 0); }),
                       "frames per second is 0.000000, expected more than 0"));
}

TEST_F(MatrixFileTest, ValuesThatAreNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  auto npy = [&](const std::string& header, const std::string& data) {
    return media_of(Kind::npy, write("bad.npy", npy_bytes(header, data)));
  };
  MediaRef media = npy(npy_header("<f4", "(3, 2)"), packed(std::vector<float>{0, 1, 2, 3, inf, 5}));
  EXPECT_EQ(message(media), media.path + ": row 2, column 0 (from 0) is not a finite 32-bit number");
  media.start_seconds = 0.01;
  EXPECT_TRUE(contains(message(media), ": row 2, column 0 (from 0)"));
  media.start_seconds = 0, media.duration_seconds = 0.02;
  EXPECT_EQ(read_feature_matrix(media).rows, 2);
  EXPECT_TRUE(contains(message(npy(npy_header("<f4", "(1, 2, 2)"), packed(std::vector<float>{0, 1, 2, -inf}))),
                       ": row 0, layer 1, column 1 (from 0)"));
  EXPECT_TRUE(
      contains(message(npy(npy_header("<f8", "(1, 2)"), packed(std::vector<double>{0, 1e39}))), "row 0, column 1"));
}

TEST_F(MatrixFileTest, FilesThatCannotBeRead) {
  EXPECT_EQ(message(media_of(Kind::npy, path("absent"))), path("absent") + ": cannot open: No such file or directory");
  EXPECT_EQ(message(media_of(Kind::ark, folder_.string())), folder_.string() + ": is a folder, expected a file");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(message(media_of(Kind::ark, path("pipe"))), path("pipe") + ": is no regular file; copy its content to one");
  const std::string file = write("short", "0123456789");
  const std::string hint =
      " byte 8, the file has only 10 bytes; it was cut short or is another file than the offset was "
      "taken from";
  EXPECT_EQ(message(media_of(Kind::npy, file, 8, 3)), file + ":8:3: 3 bytes were expected at" + hint);
  EXPECT_TRUE(
      contains(message(media_of(Kind::npy, file, 11)), ":11: data was expected at byte 11, the file has only 10"));
  EXPECT_TRUE(contains(message(media_of(Kind::npy, file, 1, std::numeric_limits<int64_t>::max())), "were expected at"));
  EXPECT_EQ(message(media_of(Kind::audio, file)),
            file + ": is no feature matrix; expected a NumPy, Kaldi or HDF5 file");
  MediaRef fast = counting(3, 1);
  fast.speed = 1.1;
  EXPECT_EQ(message(fast), fast.path + ": speed can be changed of audio only, this is a feature matrix");
}

TEST_F(MatrixFileTest, EightThreadsReadWhatOneReads) {
  std::vector<MediaRef> all;
  for (const matrix::ZipMember& member : matrix::list_zip(fixture("arrays.npz")))
    all.push_back(media_of(Kind::npy, fixture("arrays.npz"), member.offset, member.bytes));
  matrix::ArkReader reader(fixture("matrices.ark"));
  for (matrix::ArkEntry entry; reader.next(entry);)
    all.push_back(media_of(Kind::ark, fixture("matrices.ark"), entry.offset, entry.bytes));
  for (const std::string name : {"f2", "f4_be", "f8_be", "i1", "i2_be", "u1", "u4", "u8", "gzip", "group/layers"})
    all.push_back(dataset(name));
  const size_t different = all.size();
  ASSERT_EQ(different, 45u);
  while (all.size() < 200) all.push_back(all[all.size() - different]);
  std::vector<FeatureMatrix> expected;
  for (const MediaRef& media : all) expected.push_back(read_feature_matrix(media));
  std::vector<int> wrong(8, -1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      int count = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const size_t k = (i + 25 * t) % all.size();
        const FeatureMatrix m = read_feature_matrix(all[k]);
        count += m.values != expected[k].values || m.rows != expected[k].rows || m.layers != expected[k].layers;
      }
      wrong[t] = count;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

}  // namespace
}  // namespace tactus::matrix_test
