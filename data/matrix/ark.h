// Kaldi's archives of matrices, binary and text (kaldi-asr.org, "Kaldi I/O mechanisms" and "CompressedMatrix"). An
// archive is a sequence of entries: a key, a space, a matrix.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/matrix/matrix_source.h"

namespace tactus::matrix {

struct ArkEntry {
  std::string key;
  int64_t offset = 0, bytes = 0;  ///< the matrix, without key and space, is this range of the file
  int64_t rows = 0, width = 0;
};

/// Reads the keys and places of an archive's matrices one after the other, for archives without an index (.scp). Binary
/// matrices are passed over unread; text is parsed. DataError with file and byte for anything that is no archive of
/// matrices.
class ArkReader {
 public:
  explicit ArkReader(const std::string& path);
  /// The next entry; false at the end of the file. Keys may repeat: the caller knows whether they may.
  bool next(ArkEntry& entry);

 private:
  std::string read_key();

  std::unique_ptr<FileRange> file_;
  ByteCursor cursor_;
};

/// Reads the matrix at the beginning of the range: text, or binary of the types FM, DM (float, double) and CM, CM2, CM3
/// (compressed to 8 bits between the quartiles of each column, 16 bits, 8 bits).
MatrixPart read_ark(const FileRange& range, const PartOfTime& part);

}  // namespace tactus::matrix
