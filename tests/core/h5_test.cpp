#include "core/files/h5.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/files/files.h"
#include "core/half.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

class H5Test : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tactus_h5_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t files_in_folder() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

/// Files cannot grow beyond `bytes` while it lives: what a full disk does, for any user and file system.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    rlimit limited{bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  void (*previous_handler_)(int);
};

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    std::string text = e.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(H5Test, DatasetsAndAttributesRoundTrip) {
  std::vector<double> reals = {1.5, -2.25, 1e-300, 4, 5, 6};
  std::vector<int64_t> integers = {1, -(int64_t{1} << 40), 3};
  std::vector<int32_t> small = {7, -8};
  std::vector<uint8_t> bytes = {0, 255, 10};
  h5::replace(path("a.h5"), [&](h5::File& f) {
    f.write<double>("group/sub/reals", {3, 2}, reals.data());
    f.write<int64_t>("integers", {3}, integers.data());
    f.write<int32_t>("small", {2, 1}, small.data());
    f.write<uint8_t>("bytes", {3}, bytes.data());
    f.write<float>("none", {0, 4}, nullptr);
    f.write_string("text", "grüße\n");
    f.write_strings("texts", {"", "b", "ñandú"});
    f.make_group("empty");
    f.set_attribute("/", "count", int64_t{12});
    f.set_attribute("group", "rate", 0.25);
    f.set_attribute("group", "name", std::string("first"));
    f.set_attribute("group", "name", std::string("second"));
  });
  h5::File f = h5::File::open(path("a.h5"));
  EXPECT_EQ(f.read<double>("group/sub/reals"), reals);
  EXPECT_EQ(f.read<int64_t>("/integers"), integers);
  EXPECT_EQ(f.read<int32_t>("small"), small);
  EXPECT_EQ(f.read<double>("small"), (std::vector<double>{7, -8}));
  EXPECT_EQ(f.read<uint8_t>("bytes"), bytes);
  EXPECT_TRUE(f.read<float>("none").empty());
  EXPECT_EQ(f.read_rows<double>("group/sub/reals", 1, 3), (std::vector<double>{1e-300, 4, 5, 6}));
  EXPECT_TRUE(f.read_rows<double>("group/sub/reals", 3, 3).empty());
  EXPECT_EQ(f.shape("group/sub/reals"), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(f.shape("none"), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(f.stored_type("group/sub/reals"), DType::f64);
  EXPECT_EQ(f.stored_type("none"), DType::f32);
  EXPECT_EQ(f.stored_type("small"), DType::i64);
  EXPECT_EQ(f.read_string("text"), "grüße\n");
  EXPECT_EQ(f.read_strings("texts"), (std::vector<std::string>{"", "b", "ñandú"}));
  EXPECT_EQ(f.list("/"),
            (std::vector<std::string>{"bytes", "empty", "group", "integers", "none", "small", "text", "texts"}));
  EXPECT_EQ(f.list("group"), std::vector<std::string>{"sub"});
  EXPECT_TRUE(f.list("empty").empty());
  EXPECT_EQ(f.kind("group"), h5::ObjectKind::group);
  EXPECT_EQ(f.kind("small"), h5::ObjectKind::dataset);
  EXPECT_EQ(f.attribute_int("/", "count"), 12);
  EXPECT_EQ(f.attribute_real("group", "rate"), 0.25);
  EXPECT_EQ(f.attribute_list("group", "rate"), std::vector<double>{0.25});
  EXPECT_EQ(f.attribute_string("group", "name"), "second");
  EXPECT_EQ(f.attributes("group"), (std::vector<std::string>{"name", "rate"}));
  EXPECT_FALSE(f.has_attribute("group", "other"));
  EXPECT_FALSE(f.exists("group/none/deep"));
}

TEST_F(H5Test, HalfPrecisionIsStoredExactly) {
  std::vector<float> values = {0, -0.0f, 1, 65504, -2.5f, 0x1p-24f, 3 * 0x1p-20f, 1.0f / 3};
  h5::File f = h5::File::create(path("half.h5"));
  f.write_half("values", {4, 2}, values.data());
  f.make_growing("grows", 2, true, 3);
  for (int i = 0; i < 4; ++i) f.append_rows("grows", values.data() + 2 * i, 1);
  std::vector<uint16_t> bits;
  for (float v : values) bits.push_back(half_from_float(v));
  const int64_t place = f.make_contiguous("rows", h5::Stored::f16, {4, 2});
  ASSERT_GT(place, 0);
  EXPECT_EQ(place % 8, 0);
  EXPECT_EQ(f.make_contiguous("none", h5::Stored::i64, {0}), -1);
  f.close();
  write_exactly_at(FileDescriptor::open_for_writing(path("half.h5")).get(), bits.data(), 16, place, path("half.h5"));
  h5::File g = h5::File::open(path("half.h5"));
  std::vector<float> rounded;
  for (uint16_t b : bits) rounded.push_back(float_from_half(b));
  EXPECT_EQ(g.read<float>("values"), rounded);
  EXPECT_EQ(g.read<float>("grows"), rounded);
  EXPECT_EQ(g.read<float>("rows"), rounded);
  EXPECT_EQ(g.read_rows<float>("rows", 2, 3), (std::vector<float>{-2.5f, 0x1p-24f}));
  EXPECT_EQ(g.stored_type("rows"), DType::f32);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path("half.h5")));
  EXPECT_FALSE(g.is_contiguous("grows"));
  EXPECT_THROW(g.raw("grows", bytes), DataError);
  const h5::RawDataset rows = g.raw("rows", bytes), none = g.raw("none", bytes);
  EXPECT_EQ(rows.type, h5::Stored::f16);
  EXPECT_EQ(rows.elements(), 8);
  EXPECT_EQ(rows.offset, place);
  EXPECT_EQ(none.offset, -1);
  EXPECT_EQ(none.elements(), 0);
  EXPECT_THROW(g.raw("rows", place + 15), DataError) << "beyond the end of the file";
  FileDescriptor file = FileDescriptor::open_for_reading(path("half.h5"));
  const MappedFile map(file, path("half.h5"));
  EXPECT_EQ(map.size(), bytes);
  EXPECT_EQ(std::memcmp(map.data() + place, bits.data(), 16), 0);
}

TEST(Half, RoundsToNearestEven) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    auto half = static_cast<uint16_t>(b);
    float value = float_from_half(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_from_half(half_from_float(value))));
      continue;
    }
    ASSERT_EQ(half_from_float(value), half) << b;
    uint32_t magnitude = b & 0x7fff;
    if (magnitude + 1 >= 0x7c00) continue;
    // The middle between two neighbours goes to the even one, anything beyond it to the nearer.
    float next = float_from_half(static_cast<uint16_t>(half + 1)), middle = value + (next - value) / 2;
    ASSERT_EQ(half_from_float(middle), (b & 1) ? half + 1 : half) << b;
    ASSERT_EQ(half_from_float(std::nextafter(middle, next)), half + 1) << b;
    ASSERT_EQ(half_from_float(std::nextafter(middle, value)), half) << b;
  }
  EXPECT_EQ(float_from_half(0x3555), 0.333251953125f);
  EXPECT_EQ(half_from_float(65519.99f), 0x7bff);
  EXPECT_EQ(half_from_float(65520.0f), 0x7c00);
  EXPECT_EQ(half_from_float(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST_F(H5Test, ErrorsNameFileAndObject) {
  std::string name = path("e.h5");
  h5::replace(name, [](h5::File& f) {
    f.write_string("text", "x");
    double one = 1;
    f.write<double>("group/number", {1}, &one);
    f.set_attribute("group", "word", std::string("w"));
  });
  h5::File f = h5::File::open(name);
  for (auto& text : {message_of<DataError>([&] { f.read<double>("absent"); }),
                     message_of<DataError>([&] { f.read<double>("group"); }),
                     message_of<DataError>([&] { f.read_string("group/number"); }),
                     message_of<DataError>([&] { f.read_rows<double>("group/number", 0, 2); }),
                     message_of<DataError>([&] { f.read<double>("text"); }),
                     message_of<DataError>([&] { f.attribute_int("group", "absent"); }),
                     message_of<DataError>([&] { f.attribute_int("group", "word"); })})
    EXPECT_TRUE(contains(text, name)) << text;
  EXPECT_TRUE(contains(message_of<DataError>([&] { f.read<double>("absent/deep"); }), "absent/deep"));
  EXPECT_TRUE(contains(message_of<DataError>([&] { h5::File::open(path("nowhere.h5")); }), "No such file"));
  EXPECT_TRUE(contains(message_of<Error>([&] { h5::File::create(path("no/folder.h5")); }), "No such file"));
  std::ofstream(path("words.h5")) << "these are only words";
  EXPECT_TRUE(contains(message_of<DataError>([&] { h5::File::open(path("words.h5")); }), "words.h5"));
}

TEST_F(H5Test, ACutFileIsOneCleanError) {
  std::vector<double> values(5000, 1.25);
  h5::replace(path("whole.h5"), [&](h5::File& f) { f.write<double>("values", {5000}, values.data()); });
  std::string bytes = read_text_file(path("whole.h5"));
  for (size_t length : {size_t{0}, size_t{7}, size_t{100}, size_t{2000}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(path("cut.h5"), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(length));
    EXPECT_TRUE(
        contains(message_of<DataError>([&] { h5::File::open(path("cut.h5")).read<double>("values"); }), "cut.h5"));
  }
}

TEST_F(H5Test, AFullDiskLeavesTheOldFileAndNothingElse) {
  std::string name = path("model.h5");
  std::vector<double> values(100000, 3.5);
  h5::replace(name, [&](h5::File& f) { f.write<double>("old", {10}, values.data()); });
  std::string before = read_text_file(name);
  for (rlim_t limit : {rlim_t{0}, rlim_t{600}, rlim_t{4096}, rlim_t{300000}, rlim_t{800000}}) {
    FileSizeLimit full(limit);
    std::string text = message_of<Error>([&] {
      h5::replace(name, [&](h5::File& f) {
        f.write<double>("new", {100000}, values.data());
        f.set_attribute("/", "note", std::string(3000, 'x'));
      });
    });
    EXPECT_TRUE(contains(text, name)) << text;
    EXPECT_TRUE(contains(text, "File too large")) << text;
    EXPECT_FALSE(contains(text, ".tmp")) << text;
    EXPECT_EQ(files_in_folder(), 1u);
  }
  EXPECT_EQ(read_text_file(name), before);
  h5::replace(name, [&](h5::File& f) { f.write<double>("new", {100000}, values.data()); });
  EXPECT_EQ(h5::File::open(name).read<double>("new"), values);
}

TEST_F(H5Test, AFailingBuilderLeavesNothing) {
  EXPECT_THROW(h5::replace(path("x.h5"), [](h5::File&) { throw DataError("stop"); }), DataError);
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(H5Test, AtomicTextFiles) {
  write_text_atomic(path("t.txt"), "one");
  write_text_atomic(path("t.txt"), std::string("two\0three", 9));
  EXPECT_EQ(read_text_file(path("t.txt")), std::string("two\0three", 9));
  {
    AtomicFile unfinished(path("t.txt"));
    unfinished.write("half");
  }
  EXPECT_EQ(read_text_file(path("t.txt")), std::string("two\0three", 9));
  {
    FileSizeLimit full(100);
    EXPECT_TRUE(
        contains(message_of<Error>([&] { write_text_atomic(path("t.txt"), std::string(500, 'x')); }), path("t.txt")));
  }
  EXPECT_EQ(read_text_file(path("t.txt")).size(), 9u);
  EXPECT_EQ(files_in_folder(), 1u);
  EXPECT_TRUE(contains(message_of<Error>([&] { write_text_atomic(path("no/t.txt"), "x"); }), "no/t.txt"));
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_text_file(path("absent")); }), "No such file"));
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_text_file(folder_.string()); }), "folder"));
}

TEST_F(H5Test, ReadingBeyondTheEndIsAnError) {
  write_text_atomic(path("short"), "12345");
  FileDescriptor file = FileDescriptor::open_for_reading(path("short"));
  char buffer[8];
  read_exactly(file.get(), buffer, 3, 2, path("short"));
  EXPECT_EQ(std::memcmp(buffer, "345", 3), 0);
  EXPECT_TRUE(contains(message_of<DataError>([&] { read_exactly(file.get(), buffer, 4, 2, "short"); }), "short"));
}

TEST_F(H5Test, UsingAClosedFileIsAnError) {
  h5::File f = h5::File::create(path("c.h5")), copy = f;
  f.close();
  EXPECT_THROW(copy.write_string("a", "b"), Error);
}

}  // namespace
}  // namespace tactus
