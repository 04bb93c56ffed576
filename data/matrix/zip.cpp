#include "data/matrix/zip.h"

#include <algorithm>
#include <cstring>

#include "data/matrix/matrix_source.h"

namespace tactus::matrix {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralRecord = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kEnd64Locator = 0x07064b50;
constexpr int64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint32_t kIn64 = 0xffffffff;  ///< a 32-bit field whose value is in the zip64 extra field

struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

/// Position of the end record, which a comment may follow.
int64_t find_end(const FileRange& zip, std::vector<unsigned char>& tail) {
  tail.resize(static_cast<size_t>(std::min<int64_t>(zip.size(), kEndBytes + 0xffff)));
  const int64_t tail_at = zip.size() - static_cast<int64_t>(tail.size());
  zip.read(tail.data(), static_cast<int64_t>(tail.size()), tail_at);
  for (int64_t at = static_cast<int64_t>(tail.size()) - kEndBytes; at >= 0; --at) {
    const unsigned char* end = tail.data() + at;
    const int64_t comment = static_cast<int64_t>(tail.size()) - at - kEndBytes;
    if (little_endian<uint32_t>(end) == kEnd && little_endian<uint16_t>(end + 20) == comment) {
      tail.erase(tail.begin(), tail.begin() + at);
      return tail_at + at;
    }
  }
  zip.fail("is no zip archive, or was cut short: it has no directory at its end");
}

Directory find_directory64(const FileRange& zip, int64_t locator_at) {
  unsigned char locator[kLocatorBytes], end[kEnd64Bytes];
  zip.read(locator, kLocatorBytes, locator_at);
  const uint64_t at = little_endian<uint64_t>(locator + 8);
  if (little_endian<uint32_t>(locator) != kEnd64Locator || locator_at < kEnd64Bytes ||
      at > static_cast<uint64_t>(locator_at - kEnd64Bytes))
    zip.fail_at(locator_at, "expected the place of a zip64 directory; the archive is damaged");
  zip.read(end, kEnd64Bytes, static_cast<int64_t>(at));
  if (little_endian<uint32_t>(end) != kEnd64)
    zip.fail_at(static_cast<int64_t>(at), "expected the end of a zip64 directory; the archive is damaged");
  if (little_endian<uint32_t>(end + 16) != 0 || little_endian<uint32_t>(end + 20) != 0)
    zip.fail("is a volume of a divided archive; join them, e.g. zip -s 0 IN.zip --out OUT.zip");
  return {little_endian<uint64_t>(end + 48), little_endian<uint64_t>(end + 40), little_endian<uint64_t>(end + 32)};
}

Directory find_directory(const FileRange& zip) {
  std::vector<unsigned char> end;
  const int64_t end_at = find_end(zip, end);
  const uint16_t disk = little_endian<uint16_t>(end.data() + 4), entries = little_endian<uint16_t>(end.data() + 10);
  const uint32_t bytes = little_endian<uint32_t>(end.data() + 12), offset = little_endian<uint32_t>(end.data() + 16);
  Directory directory{offset, bytes, entries};
  int64_t limit = end_at;
  if (entries == 0xffff || bytes == kIn64 || offset == kIn64) {
    limit = end_at - kLocatorBytes;
    directory = find_directory64(zip, limit);
  } else if (disk != 0) {
    zip.fail("is a volume of a divided archive; join them, e.g. zip -s 0 IN.zip --out OUT.zip");
  }
  if (directory.offset > static_cast<uint64_t>(limit) ||
      directory.bytes > static_cast<uint64_t>(limit) - directory.offset) {
    zip.fail_at(end_at, "the directory is said to be " + std::to_string(directory.bytes) + " bytes at " +
                            std::to_string(directory.offset) + ", beyond its end; the archive is damaged");
  }
  return directory;
}

struct Record {
  ZipMember member;
  uint16_t flags = 0, method = 0;
  uint64_t stored_bytes = 0, bytes = 0, header_at = 0;
};

/// Replaces the fields that did not fit into 32 bits by those of the extra field 0x0001, where they follow one another
/// in this order.
bool apply_zip64(const unsigned char* extra, size_t count, Record& record) {
  while (count >= 4) {
    const size_t size = little_endian<uint16_t>(extra + 2);
    if (size > count - 4) return false;
    if (little_endian<uint16_t>(extra) == 1) {
      size_t at = 0;
      for (uint64_t* field : {&record.bytes, &record.stored_bytes, &record.header_at}) {
        if (*field != kIn64) continue;
        if (size - at < 8) return false;
        *field = little_endian<uint64_t>(extra + 4 + at);
        at += 8;
      }
      return true;
    }
    extra += 4 + size, count -= 4 + size;
  }
  return true;
}

/// The content begins after the local header, whose extra field may be longer than the directory's.
void locate(const FileRange& zip, const Directory& directory, size_t name_bytes, Record& record) {
  const std::string name = printable(record.member.name);
  if (record.flags & 1) zip.fail("member '" + name + "' is encrypted; store it plain, e.g. zip -0 -r OUT.zip FOLDER");
  if (record.method != 0) {
    zip.fail("member '" + name + "' is compressed (method " + std::to_string(record.method) +
             "), its numbers cannot be read in place; store without compression, e.g. zip -0 -r OUT.zip FOLDER");
  }
  if (record.stored_bytes != record.bytes) {
    zip.fail("member '" + name + "' is stored in " + std::to_string(record.stored_bytes) + " bytes but said to hold " +
             std::to_string(record.bytes) + "; the archive is damaged");
  }
  const uint64_t limit = directory.offset;
  if (limit < kLocalBytes || record.header_at > limit - kLocalBytes) {
    zip.fail("member '" + name + "' is said to lie at byte " + std::to_string(record.header_at) +
             ", beyond the directory; the archive is damaged");
  }
  unsigned char local[kLocalBytes];
  const int64_t header_at = static_cast<int64_t>(record.header_at);
  zip.read(local, kLocalBytes, header_at);
  if (little_endian<uint32_t>(local) != kLocalHeader || little_endian<uint16_t>(local + 26) != name_bytes)
    zip.fail_at(header_at, "expected the header of member '" + name + "'; the archive is damaged");
  const uint64_t offset = record.header_at + kLocalBytes + name_bytes + little_endian<uint16_t>(local + 28);
  if (offset > limit || record.bytes > limit - offset) {
    zip.fail("member '" + name + "' of " + std::to_string(record.bytes) + " bytes at " + std::to_string(offset) +
             " reaches into the directory; the archive is damaged");
  }
  record.member.offset = static_cast<int64_t>(offset), record.member.bytes = static_cast<int64_t>(record.bytes);
}

}  // namespace

std::vector<ZipMember> list_zip(const std::string& path) {
  const FileRange zip(path, -1, -1, path);
  const Directory directory = find_directory(zip);
  std::vector<unsigned char> bytes(directory.bytes);
  zip.read(bytes.data(), static_cast<int64_t>(bytes.size()), static_cast<int64_t>(directory.offset));
  std::vector<ZipMember> members;
  uint64_t entries = 0;
  for (size_t at = 0; at < bytes.size(); ++entries) {
    const unsigned char* entry = bytes.data() + at;
    const int64_t file_at = static_cast<int64_t>(directory.offset + at);
    const size_t left = bytes.size() - at;
    if (left < kCentralBytes || little_endian<uint32_t>(entry) != kCentralRecord)
      zip.fail_at(file_at, "expected an entry of the directory; the archive is damaged");
    const size_t name_bytes = little_endian<uint16_t>(entry + 28), extra_bytes = little_endian<uint16_t>(entry + 30);
    const size_t whole = kCentralBytes + name_bytes + extra_bytes + little_endian<uint16_t>(entry + 32);
    Record record;
    record.flags = little_endian<uint16_t>(entry + 8), record.method = little_endian<uint16_t>(entry + 10);
    record.stored_bytes = little_endian<uint32_t>(entry + 20), record.bytes = little_endian<uint32_t>(entry + 24);
    record.header_at = little_endian<uint32_t>(entry + 42);
    if (whole > left || !apply_zip64(entry + kCentralBytes + name_bytes, extra_bytes, record))
      zip.fail_at(file_at, "an entry of the directory is longer than the directory; the archive is damaged");
    record.member.name.assign(reinterpret_cast<const char*>(entry) + kCentralBytes, name_bytes);
    at += whole;
    if (record.member.name.ends_with('/')) continue;
    locate(zip, directory, name_bytes, record);
    members.push_back(std::move(record.member));
  }
  if (entries != directory.entries) {
    zip.fail("its directory has " + std::to_string(entries) + " entries, " + std::to_string(directory.entries) +
             " were promised; the archive is damaged");
  }
  return members;
}

}  // namespace tactus::matrix
