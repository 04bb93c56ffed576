// Manifests: tab-separated tables with a header line, one utterance per line. No quoting and no escapes: a field is
// every byte between two tabs.
//
//   id, audio, n_frames, tgt_text     required; audio is relative to the manifest's folder; n_frames in 10 ms frames
//   src_text, speaker, subset         optional; other columns are kept as they are
#pragma once

#include <cstdint>
#include "data/item.h"
#include <string>
#include <vector>

namespace tactus {

struct ManifestRow {
  std::string id;
  std::string audio;  ///< as written
  int64_t n_frames = 0;
  std::string tgt_text, src_text, speaker, subset;
  std::vector<std::string> extra;  ///< in the order of Manifest::extra_columns
  int64_t line = 0;                ///< line of the file, from 1
};

struct Manifest {
  std::string path;
  std::vector<std::string> extra_columns;
  bool has_src_text = false;
  std::vector<ManifestRow> rows;
  DropCounts dropped;  ///< rows left out under OnError::skip

  /// "file:line (id ID)" for messages.
  std::string where(const ManifestRow& row) const;
  /// Path of a row's audio file.
  std::string audio_path(const ManifestRow& row) const;
};

/// Errors in the header and repeated ids always stop: they say that the file is not what it was meant to be. A row with
/// a wrong number of fields, an empty id, a bad n_frames or an empty transcript stops with DataError or is dropped and
/// counted.
Manifest read_manifest(const std::string& path, OnError on_error = OnError::stop);

}  // namespace tactus
