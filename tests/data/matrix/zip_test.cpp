#include "data/matrix/zip.h"

#include <filesystem>
#include <functional>

#include "tests/data/matrix/matrix_test_util.h"

namespace tactus::matrix_test {
namespace {

using matrix::list_zip;
using matrix::ZipMember;

/// One member as it is to be written, with whatever lies the test needs.
struct Entry {
  std::string name{}, data{};
  std::string local_extra{}, central_extra{};
  uint16_t flags = 0, method = 0;
  uint32_t stored_bytes = 0, bytes = 0, header_at = 0;
};

struct End {
  uint16_t disk = 0, entries = 0;
  uint32_t bytes = 0, offset = 0;
  std::string comment{};
};

using Change = std::function<void(std::vector<Entry>&, End&)>;

std::string central_record(const Entry& e) {
  return packed(uint32_t{0x02014b50}) + std::string(4, '\0') + packed(e.flags) + packed(e.method) +
         std::string(8, '\0') + packed(e.stored_bytes) + packed(e.bytes) +
         packed(static_cast<uint16_t>(e.name.size())) + packed(static_cast<uint16_t>(e.central_extra.size())) +
         std::string(10, '\0') + packed(e.header_at) + e.name + e.central_extra;
}

std::string end_record(const End& end) {
  return packed(uint32_t{0x06054b50}) + packed(end.disk) + packed(end.disk) + packed(end.entries) +
         packed(end.entries) + packed(end.bytes) + packed(end.offset) +
         packed(static_cast<uint16_t>(end.comment.size())) + end.comment;
}

/// A zip whose directory and end record are changed before they are written.
std::string zip_bytes(std::vector<Entry> entries, const Change& change = {}) {
  std::string bytes;
  for (Entry& e : entries) {
    e.header_at = static_cast<uint32_t>(bytes.size());
    e.stored_bytes = e.bytes = static_cast<uint32_t>(e.data.size());
    bytes += packed(uint32_t{0x04034b50}) + std::string(22, '\0') + packed(static_cast<uint16_t>(e.name.size())) +
             packed(static_cast<uint16_t>(e.local_extra.size())) + e.name + e.local_extra + e.data;
  }
  End end;
  end.offset = static_cast<uint32_t>(bytes.size()), end.entries = static_cast<uint16_t>(entries.size());
  for (const Entry& e : entries) end.bytes += static_cast<uint32_t>(central_record(e).size());
  if (change) change(entries, end);
  for (const Entry& e : entries) bytes += central_record(e);
  return bytes + end_record(end);
}

class ZipTest : public MatrixTest {
 protected:
  std::string complaint(const std::string& bytes) const {
    const std::string file = write("bad.zip", bytes);
    const std::string message = message_of<DataError>([&] { list_zip(file); });
    EXPECT_EQ(message.find(file + ": "), 0u) << message;
    return message.substr(std::min(message.size(), file.size() + 2));
  }
  const std::vector<Entry> two_ = {{.name = "a.npy", .data = "hello"}, {.name = "folder/b.npy", .data = "wide world"}};
};

TEST_F(ZipTest, ExtraFieldsOfLocalHeadersCount) {
  std::vector<Entry> entries = two_;
  entries[0].local_extra = std::string(28, 'x');  // the directory has none: zip programs write time stamps here
  entries[1].central_extra = std::string("\x55\x54\x01\x00x", 5);
  entries.insert(entries.begin() + 1, {.name = "folder/"});
  const std::string bytes = zip_bytes(entries, [](auto&, End& end) { end.comment = "a comment PK\5\6 of any kind"; });
  const std::vector<ZipMember> members = list_zip(write("a.zip", bytes));
  ASSERT_EQ(members.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(members[i].name, two_[i].name);
    EXPECT_EQ(bytes.substr(static_cast<size_t>(members[i].offset), static_cast<size_t>(members[i].bytes)),
              two_[i].data);
  }
  EXPECT_EQ(members[0].offset, 30 + 5 + 28);
}

TEST_F(ZipTest, NoMembers) { EXPECT_TRUE(list_zip(write("a.zip", zip_bytes({}))).empty()); }

TEST_F(ZipTest, ArchivesBeyondFourGigabytes) {
  // A sparse file: a member of 5 GiB of zeros, one after it, and a directory beyond 32 bits.
  const std::string file = path("large.zip");
  const uint64_t large = uint64_t{5} << 30;
  const std::string header = packed(uint32_t{0x04034b50}) + std::string(22, '\0');
  const std::string first = header + packed(uint16_t{5}) + packed(uint16_t{20}) + "a.npy" + std::string(20, 'x');
  const std::string second = header + packed(uint16_t{5}) + packed(uint16_t{0}) + "b.npy" + "hello";
  const uint64_t second_at = first.size() + large, directory_at = second_at + second.size();
  Entry a{.name = "a.npy", .stored_bytes = 0xffffffff, .bytes = 0xffffffff};
  a.central_extra = packed(uint16_t{0x5455}) + packed(uint16_t{1}) + "t" + packed(uint16_t{1}) + packed(uint16_t{16}) +
                    packed(large) + packed(large);
  Entry b{.name = "b.npy", .stored_bytes = 5, .bytes = 5, .header_at = 0xffffffff};
  b.central_extra = packed(uint16_t{1}) + packed(uint16_t{8}) + packed(second_at);
  const std::string directory = central_record(a) + central_record(b);
  const std::string end64 = packed(uint32_t{0x06064b50}) + packed(uint64_t{44}) + std::string(12, '\0') +
                            packed(uint64_t{2}) + packed(uint64_t{2}) + packed(uint64_t{directory.size()}) +
                            packed(directory_at);
  const std::string locator = packed(uint32_t{0x07064b50}) + packed(uint32_t{0}) +
                              packed(directory_at + directory.size()) + packed(uint32_t{1});
  {
    std::ofstream out(file, std::ios::binary);
    out << first;
    out.seekp(static_cast<std::streamoff>(second_at));
    out << second << directory << end64 << locator << end_record({.entries = 2, .offset = 0xffffffff});
  }
  const std::vector<ZipMember> members = list_zip(file);
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].offset, 55);
  EXPECT_EQ(members[0].bytes, static_cast<int64_t>(large));
  EXPECT_EQ(members[1].name, "b.npy");
  EXPECT_EQ(members[1].offset, static_cast<int64_t>(second_at) + 35);
  EXPECT_EQ(members[1].bytes, 5);
  std::filesystem::resize_file(file, directory_at + 10);
  EXPECT_TRUE(contains(message_of<DataError>([&] { list_zip(file); }), "was cut short"));
}

TEST_F(ZipTest, MembersThatCannotBeReadInPlace) {
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto& e, End&) { e[1].method = 8; })),
            "member 'folder/b.npy' is compressed (method 8), its numbers cannot be read in place; store without "
            "compression, e.g. zip -0 -r OUT.zip FOLDER");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto& e, End&) { e[0].flags = 1; })),
            "member 'a.npy' is encrypted; store it plain, e.g. zip -0 -r OUT.zip FOLDER");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto&, End& end) { end.disk = 1; })),
            "is a volume of a divided archive; join them, e.g. zip -s 0 IN.zip --out OUT.zip");
}

TEST_F(ZipTest, DamagedArchives) {
  EXPECT_EQ(complaint("no zip"), "is no zip archive, or was cut short: it has no directory at its end");
  const std::string good = zip_bytes(two_);
  EXPECT_EQ(complaint(good.substr(0, good.size() - 1)),
            "is no zip archive, or was cut short: it has no directory at its end");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto& e, End&) { e[0].bytes = 6; })),
            "member 'a.npy' is stored in 5 bytes but said to hold 6; the archive is damaged");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto& e, End&) { e[0].header_at = 1000; })),
            "member 'a.npy' is said to lie at byte 1000, beyond the directory; the archive is damaged");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto& e, End&) { e[0].header_at = 1; })),
            "byte 1 of the file: expected the header of member 'a.npy'; the archive is damaged");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto& e, End&) { e[0].bytes = e[0].stored_bytes = 100; })),
            "member 'a.npy' of 100 bytes at 35 reaches into the directory; the archive is damaged");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto&, End& end) { end.entries = 3; })),
            "its directory has 2 entries, 3 were promised; the archive is damaged");
  EXPECT_EQ(
      complaint(zip_bytes(two_, [](auto&, End& end) { end.bytes += 1; })),
      "byte 201 of the file: the directory is said to be 110 bytes at 92, beyond its end; the archive is damaged");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto&, End& end) { end.bytes -= 1; })),
            "byte 143 of the file: an entry of the directory is longer than the directory; the archive is damaged");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto&, End& end) { end.offset -= 1; })),
            "byte 91 of the file: expected an entry of the directory; the archive is damaged");
  EXPECT_EQ(complaint(zip_bytes(two_, [](auto&, End& end) { end.offset = 0xffffffff; })),
            "byte 181 of the file: expected the place of a zip64 directory; the archive is damaged");
  const std::string longer_than_itself = zip_bytes(two_, [](auto& e, End& end) {
    e[1].central_extra = std::string("\1\0\xff\0", 4);
    end.bytes += 4;
  });
  EXPECT_EQ(complaint(longer_than_itself),
            "byte 143 of the file: an entry of the directory is longer than the directory; the archive is damaged");
}

}  // namespace
}  // namespace tactus::matrix_test
