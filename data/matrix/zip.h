// Zip archives as stores of files: where the bytes of each member lie (PKWARE APPNOTE 6.3, sections 4.3 and 4.5.3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tactus::matrix {

struct ZipMember {
  std::string name;
  int64_t offset = 0, bytes = 0;  ///< the member's content is this range of the zip
};

/// Members in the order of the central directory, folders left out. Archives and members beyond 4 GB are read (zip64).
/// DataError where a member is compressed or encrypted, the archive has several volumes, is damaged or cut short.
std::vector<ZipMember> list_zip(const std::string& path);

}  // namespace tactus::matrix
