// The `input` section of a preparation recipe: which format the data has and where it lies. One function opens any of
// them; each format is a file of data/input/.
#pragma once

#include <memory>
#include <string>

#include "core/config/config.h"
#include "data/item.h"

namespace tactus {

struct InputOptions {
  std::string format = "manifest";
  std::string path;                    ///< folder (see docs/data.md for what each format expects in it)
  std::string audio_root;              ///< folder that relative audio paths start from; empty: the format's own
  std::string source, target;          ///< languages, file suffixes or column names, as the format reads them
  std::string invalid_utf8 = "error";  ///< or replace
  void visit(ConfigVisitor& v);
};

/// Opens split `split`. ConfigError for an unknown format (with the nearest) or options it cannot use, DataError for a
/// missing file, naming what was looked for.
std::unique_ptr<ItemReader> open_items(const InputOptions& options, const std::string& split, OnError on_error);

}  // namespace tactus
