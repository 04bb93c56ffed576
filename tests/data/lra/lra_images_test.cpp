// Readers of pictures: CIFAR-10, IDX files, trees of PNG files. Damaged files give items or DataError, never more.
#include <zlib.h>

#include <cmath>

#include "core/rng.h"
#include "data/lra/idx.h"
#include "data/lra/image/png_read.h"
#include "tests/data/lra/lra_test_util.h"

#if defined(TACTUS_WITH_PNG)
#include <png.h>
#endif

namespace tactus {
namespace {

class LraImages : public LraTest {
 protected:
  static std::string noise(size_t count, uint64_t seed) {
    Rng rng(seed);
    std::string bytes(count, '\0');
    for (char& b : bytes) b = static_cast<char>(rng.next());
    return bytes;
  }
  /// `count` records of CIFAR-10 whose labels are 0, 1, ... modulo 10.
  static std::string records(int count, uint64_t seed) {
    std::string bytes;
    for (int i = 0; i < count; ++i)
      bytes += static_cast<char>(i % 10) + noise(3072, mix_key(seed, static_cast<uint64_t>(i)));
    return bytes;
  }
  void write_cifar(const std::string& folder) const {
    for (int k = 1; k <= 5; ++k)
      write(folder + "data_batch_" + std::to_string(k) + ".bin", records(8, static_cast<uint64_t>(k)));
    write(folder + "test_batch.bin", records(7, 9));
  }
  void write_idx(const std::string& prefix, int count, int side, const std::string& labels) const {
    write(prefix + "-images-idx3-ubyte",
          idx_header({count, side, side}) + noise(static_cast<size_t>(count * side * side), 3));
    write(prefix + "-labels-idx1-ubyte", idx_header({static_cast<int64_t>(labels.size())}) + labels);
  }
  static void pack(const std::string& file) {
    const std::string bytes = read(file);
    gzFile packed = gzopen((file + ".gz").c_str(), "wb");
    gzwrite(packed, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(packed);
    std::filesystem::remove(file);
  }
  /// Opens and reads; true when that ended in a DataError. Anything else that is thrown fails the test.
  bool refused(Open open, const std::string& split) const {
    try {
      items(open, split, OnError::skip);
      return false;
    } catch (const DataError&) {
      return true;
    }
  }
  /// Damages `file` in many ways and reads it each time.
  int refusals(Open open, const std::string& split, const std::string& file, size_t head, int rounds) const {
    const std::string bytes = read(path(file));
    Rng rng(5);
    int count = 0;
    for (int k = 0; k < rounds; ++k) {
      std::string damaged = bytes.substr(0, k % 2 == 0 ? bytes.size() : rng.below(bytes.size() + 1));
      for (int n = 0; n < 4 && !damaged.empty(); ++n)
        damaged[rng.below(n % 2 == 0 ? std::min(head, damaged.size()) : damaged.size())] =
            static_cast<char>(rng.next());
      write(file, damaged);
      count += refused(open, split) ? 1 : 0;
    }
    write(file, bytes);
    return count;
  }
};

TEST_F(LraImages, CifarIsGreyAndSplitAtTheLastTenth) {
  write_cifar("");
  const auto train = items(open_lra_image, "train"), valid = items(open_lra_image, "valid"),
             test = items(open_lra_image, "test");
  ASSERT_EQ(train.size(), 36u);
  ASSERT_EQ(valid.size(), 4u);
  ASSERT_EQ(test.size(), 7u);
  EXPECT_EQ(train[0].id, "data_batch_1/0");
  EXPECT_EQ(train[35].id, "data_batch_5/3");
  EXPECT_EQ(valid[0].id, "data_batch_5/4");
  EXPECT_EQ(valid[3].id, "data_batch_5/7");
  EXPECT_EQ(test[6].id, "test_batch/6");
  EXPECT_EQ(train[9].tgt_text, "1");
  const std::string bytes = read(path("data_batch_2.bin"));
  ASSERT_EQ(train[9].src_text.size(), 1024u);
  for (size_t i = 0; i < 1024; ++i) {
    const auto byte = [&](size_t plane) {
      return static_cast<double>(static_cast<unsigned char>(bytes[3073 + 1 + plane * 1024 + i]));
    };
    const double luma = 0.2989 * byte(0) + 0.587 * byte(1) + 0.114 * byte(2);
    EXPECT_NEAR(static_cast<unsigned char>(train[9].src_text[i]), luma * 255.5 / 255 - 0.5, 0.501);
  }
  const auto reader = open_lra_image(input("lra_image"), "test", OnError::stop);
  EXPECT_TRUE(reader->binary_source() && reader->has_src_text());
}

TEST_F(LraImages, GreyOfWhiteAndBlack) {
  write("test_batch.bin",
        std::string(1, '\3') + std::string(3072, '\xff') + std::string(1, '\4') + std::string(3072, '\0'));
  const auto test = items(open_lra_image, "test");
  EXPECT_EQ(test.at(0).src_text, std::string(1024, '\xff'));
  EXPECT_EQ(test.at(1).src_text, std::string(1024, '\0'));
  EXPECT_EQ(test[0].tgt_text + test[1].tgt_text, "34");
}

TEST_F(LraImages, CifarFaults) {
  expect_error<DataError>([&] { items(open_lra_image, "train"); }, {"data_batch_1.bin", "cifar-10-batches-bin"});
  write_cifar("cifar-10-batches-bin/");
  EXPECT_EQ(items(open_lra_image, "train").size(), 36u);
  write("cifar-10-batches-bin/data_batch_3.bin", records(1, 1) + '\12' + noise(3072, 1) + records(1, 2));
  expect_error<DataError>([&] { items(open_lra_image, "train"); }, {"data_batch_3.bin: record 1", "label is 10"});
  DropCounts drops;
  EXPECT_EQ(items(open_lra_image, "train", OnError::skip, &drops).size(), 31u);
  EXPECT_EQ(drops.at("bad_label").ids, std::vector<std::string>{"data_batch_3/1"});
  write("cifar-10-batches-bin/data_batch_3.bin", records(2, 1) + "x");
  expect_error<DataError>([&] { items(open_lra_image, "valid"); }, {"data_batch_3.bin", "6147 bytes", "3073"});
  write("cifar-10-batches-bin/data_batch_3.bin", "");
  expect_error<DataError>([&] { items(open_lra_image, "valid"); }, {"data_batch_3.bin", "0 bytes"});
}

TEST_F(LraImages, FashionMnistPlainAndPacked) {
  const std::string labels("\0\1\2\3\4\5\6\7\10\11\0\1\2\3\4\5\6\7\10\11\0", 21);
  write_idx("train", 21, 28, labels);
  write_idx("t10k", 3, 28, std::string("\7\0\1", 3));
  const auto check = [&] {
    const auto train = items(open_fashion_mnist, "train"), valid = items(open_fashion_mnist, "valid"),
               test = items(open_fashion_mnist, "test");
    ASSERT_EQ(train.size(), 19u);
    ASSERT_EQ(valid.size(), 2u);
    ASSERT_EQ(test.size(), 3u);
    EXPECT_EQ(valid[0].src_text, noise(21 * 784, 3).substr(19 * 784, 784));
    EXPECT_EQ(valid[0].tgt_text, "9");
    EXPECT_EQ(valid[1].id, "train/20");
    EXPECT_EQ(test[0].tgt_text, "7");
    EXPECT_EQ(test[2].src_text, noise(3 * 784, 3).substr(2 * 784));
  };
  check();
  for (const std::string prefix : {"train", "t10k"}) {
    pack(path(prefix + "-images-idx3-ubyte"));
    pack(path(prefix + "-labels-idx1-ubyte"));
  }
  check();
}

TEST_F(LraImages, IdxFaults) {
  const std::string images = "test-images-idx3-ubyte", labels = "test-labels-idx1-ubyte";
  const auto fails = [&](const std::vector<std::string>& parts) {
    expect_error<DataError>([&] { items(open_lra_pathfinder, "test"); }, parts);
  };
  fails({"test-images-idx3-ubyte", "metadata"});
  write_idx("test", 3, 5, std::string("\0\1\2", 3));
  fails({"picture 2", labels, "2, expected less than 2"});
  DropCounts drops;
  EXPECT_EQ(items(open_lra_pathfinder, "test", OnError::skip, &drops).size(), 2u);
  EXPECT_EQ(drops.at("bad_label").ids, std::vector<std::string>{"test/2"});
  write_idx("test", 3, 5, std::string("\0\1", 2));
  fails({"3 pictures", "2 labels"});
  write(images, idx_header({3, 5, 5}) + std::string(74, 'x'));
  fails({images, "90 bytes", "asks for 91"});
  write(images, idx_header({1000000000, 5, 5}));
  fails({images, "16 bytes", "asks for 25000000016"});
  write(images, idx_header({3, 65536, 65536}));
  fails({images, "dimension 2 is 65536"});
  write(images, idx_header({3, 0, 5}));
  fails({images, "dimension 1 is 0"});
  write(images, idx_header({3, 5}) + std::string(15, 'x'));
  fails({images, "0 0 8 2, expected 0 0 8 3"});
  write(images, "ab");
  fails({images, "the header"});
}

TEST_F(LraImages, DamagedGzipIsAnError) {
  write_idx("t10k", 5, 128, std::string("\0\1\2\3\4", 5));
  const std::string file = path("t10k-images-idx3-ubyte");
  pack(file);
  const std::string bytes = read(file + ".gz");
  write("t10k-images-idx3-ubyte.gz", bytes.substr(0, bytes.size() / 2));
  expect_error<DataError>([&] { items(open_fashion_mnist, "test"); }, {"ubyte.gz", "item", "copy it again"});
  std::string damaged = bytes;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  write("t10k-images-idx3-ubyte.gz", damaged);
  expect_error<DataError>([&] { items(open_fashion_mnist, "test"); }, {"ubyte.gz", "check"});
  write("t10k-images-idx3-ubyte.gz", bytes);
  EXPECT_EQ(items(open_fashion_mnist, "test").size(), 5u);
  EXPECT_GT(refusals(open_fashion_mnist, "test", "t10k-images-idx3-ubyte.gz", 40, 60), 45);
}

TEST_F(LraImages, DamagedFilesGiveItemsOrDataError) {
  write_cifar("");
  EXPECT_GT(refusals(open_lra_image, "test", "test_batch.bin", 3073, 100), 40);
  write_idx("test", 6, 8, std::string("\0\1\1\0\0\1", 6));
  EXPECT_GT(refusals(open_lra_pathfinder, "test", "test-images-idx3-ubyte", 16, 300), 200);
  EXPECT_GT(refusals(open_lra_pathfinder, "test", "test-labels-idx1-ubyte", 8, 300), 200);
}

#if defined(TACTUS_WITH_PNG)

std::string png_of(int width, int height, const std::string& pixels, int format = PNG_FORMAT_GRAY) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<unsigned>(width), image.height = static_cast<unsigned>(height);
  image.format = static_cast<unsigned>(format);
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

class LraPng : public LraImages {
 protected:
  static std::string pixels(int i) { return noise(32 * 32, static_cast<uint64_t>(100 + i)); }
  /// 10 pictures in each of `folders` folders, in the layout of the released set.
  void write_tree(const std::string& root, int folders) const {
    for (int f = 0; f < folders; ++f) {
      std::string metadata;
      for (int i = 0; i < 10; ++i) {
        const std::string folder = "imgs/" + std::to_string(f), file = "sample_" + std::to_string(i) + ".png";
        metadata +=
            folder + " " + file + " " + std::to_string(i) + " " + std::to_string(i % 2) + " 1.0 14 4 5 1 2 0.5\n";
        write(root + folder + "/" + file, png_of(32, 32, pixels(f * 10 + i)));
      }
      write(root + "metadata/" + std::to_string(f) + ".npy", metadata);
    }
  }
};

TEST_F(LraPng, TreesAreReadInTheOrderOfTheirMetadata) {
  write_tree("pathfinder32/curv_contour_length_14/", 11);  // 10.npy comes after 9.npy
  int index = 0;
  for (const auto& [split, count] : {std::pair{"train", 88}, {"valid", 11}, {"test", 11}}) {
    const auto all = items(open_lra_pathfinder, split);
    ASSERT_EQ(all.size(), static_cast<size_t>(count));
    for (const Item& item : all) {
      EXPECT_EQ(item.src_text, pixels(index)) << index;
      EXPECT_EQ(item.tgt_text, std::to_string(index % 2));
      EXPECT_EQ(item.id, "imgs/" + std::to_string(index / 10) + "/sample_" + std::to_string(index % 10) + ".png");
      ++index;
    }
  }
}

TEST_F(LraPng, Faults) {
  write_tree("", 1);
  write("imgs/0/sample_2.png", "");
  expect_error<DataError>([&] { items(open_lra_pathfinder, "train"); }, {"sample_2.png", "is empty"});
  write("imgs/0/sample_3.png", png_of(32, 32, pixels(3)).substr(0, 500));
  std::filesystem::remove(path("imgs/0/sample_4.png"));
  write("imgs/0/sample_5.png", "GIF89a");
  write("imgs/0/sample_6.png", png_of(2000, 2, noise(4000, 1)));
  write("imgs/0/sample_7.png", png_of(2, 1, std::string("\xff\xff\xff\0\0\0", 6), PNG_FORMAT_RGB));
  DropCounts drops;
  const auto train = items(open_lra_pathfinder, "train", OnError::skip, &drops);
  ASSERT_EQ(train.size(), 3u);
  EXPECT_EQ(train[2].src_text, std::string("\xff\0", 2));
  EXPECT_EQ(drops.at("bad_picture").count, 5);
  write("metadata/0.npy", "imgs/0 sample_0.png 0 1\nimgs/0 sample_1.png\n\nimgs/0 sample_1.png 1 2\n");
  expect_error<DataError>([&] { items(open_lra_pathfinder, "train"); }, {"0.npy:2", "folder file number label"});
  EXPECT_EQ(items(open_lra_pathfinder, "train", OnError::skip).size(), 1u);
  write("metadata/0.npy", std::string("\x93NUMPY\1\0", 8));
  expect_error<DataError>([&] { items(open_lra_pathfinder, "train"); }, {"0.npy:1"});
  write("metadata/x.npy", "");
  expect_error<DataError>([&] { items(open_lra_pathfinder, "train"); }, {"x.npy", "no number"});
  std::filesystem::remove_all(path("metadata"));
  std::filesystem::create_directories(path("metadata"));
  expect_error<DataError>([&] { items(open_lra_pathfinder, "train"); }, {"metadata", "no N.npy"});
}

TEST_F(LraPng, DamagedFilesGiveItemsOrDataError) {
  write_tree("", 1);
  EXPECT_GT(refusals(open_lra_pathfinder, "train", "metadata/0.npy", 60, 60), 10);
  const std::string bytes = read(path("imgs/0/sample_1.png"));
  Rng rng(6);
  int dropped = 0;
  for (int k = 0; k < 150; ++k) {
    std::string damaged = bytes.substr(0, k % 3 == 0 ? rng.below(bytes.size()) : bytes.size());
    for (int n = 0; n < 3 && !damaged.empty(); ++n)
      damaged[rng.below(std::min<size_t>(n == 0 ? 60 : 2000, damaged.size()))] = static_cast<char>(rng.next());
    write("imgs/0/sample_1.png", damaged);
    try {
      read_png_grey(path("imgs/0/sample_1.png"));
    } catch (const DataError&) {
      ++dropped;
    }
  }
  EXPECT_GT(dropped, 100);
}

#else

TEST_F(LraImages, ABuildWithoutLibpngSaysSo) {
  write("metadata/0.npy", "imgs/0 sample_0.png 0 1\n");
  expect_error<ConfigError>([&] { items(open_lra_pathfinder, "train"); }, {"libpng-dev", "generate pathfinder"});
}

#endif

}  // namespace
}  // namespace tactus
