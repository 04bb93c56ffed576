// Finished parts of a preparation on disk, so that an interrupted one goes on where it stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus/corpus_writer.h"

namespace tactus {

/// One item after the work on it.
struct ProcessedItem {
  std::string reason;                              ///< why it is left out, or ""
  std::string message;                             ///< the same in words
  EncodedItem encoded;                             ///< without frame_bytes once it lies in a part
  int64_t unknown_target = 0, unknown_source = 0;  ///< tokens
};

/// Where the frames of a part's kept items lie, end to end.
struct PartFrames {
  std::string path;
  int64_t offset = 0, bytes = 0;
};

/// A folder of parts. Each part is one file, written under a temporary name, whose key says from what it was made: the
/// recipe and every item with its texts and the size and time of its files.
class PartStore {
 public:
  explicit PartStore(const std::string& folder) : folder_(folder) {}
  /// The part's items, when a whole part of that name and key is there.
  bool load(const std::string& name, uint64_t key, std::vector<ProcessedItem>& items, PartFrames& frames) const;
  /// Writes a part and strips the frame_bytes of its items.
  PartFrames store(const std::string& name, uint64_t key, std::vector<ProcessedItem>& items) const;
  void remove_all() const;

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

}  // namespace tactus
