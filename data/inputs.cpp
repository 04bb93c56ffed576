#include "data/inputs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/input/json_lines.h"
#include "data/input/kaldi.h"
#include "data/input/manifest.h"
#include "data/input/mustc.h"
#include "data/input/slurp.h"
#include "data/input/text_pair.h"
#include "data/input/wmt14.h"
#include "data/input/xsum.h"

namespace tactus {
namespace {

struct Format {
  const char* name;
  std::unique_ptr<ItemReader> (*open)(const InputOptions&, const std::string&, OnError);
};

constexpr Format kFormats[] = {
    {"manifest", open_manifest}, {"fairseq_tsv", open_fairseq_tsv},
    {"kaldi", open_kaldi},       {"text_pair", open_text_pair},
    {"jsonl", open_json_lines},  {"mustc", open_mustc},
    {"slurp", open_slurp},       {"xsum", open_xsum},
    {"wmt14", open_wmt14},
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& f : kFormats) names.emplace_back(f.name);
  return names;
}

}  // namespace

void InputOptions::visit(ConfigVisitor& v) {
  v.field("format", format, {.doc = "What the data look like", .choices = format_names()});
  v.field("path", path, {.doc = "Folder of the data", .required = true});
  v.field("audio_root", audio_root,
          {.doc = "Folder from which relative audio paths start; empty: as the format has it"});
  v.field("source", source, {.doc = "Language, suffix or key of the source text, as the format reads it"});
  v.field("target", target, {.doc = "Language, suffix or key of the target text"});
  v.field(
      "invalid_utf8", invalid_utf8,
      {.doc = "Bytes that are no UTF-8: an error, or replaced by U+FFFD and counted", .choices = {"error", "replace"}});
}

std::unique_ptr<ItemReader> open_items(const InputOptions& options, const std::string& split, OnError on_error) {
  for (const Format& f : kFormats) {
    if (options.format == f.name) return f.open(options, split, on_error);
  }
  const std::vector<std::string> names = format_names();
  const std::string near = nearest_name(options.format, names.data(), static_cast<int>(names.size()));
  throw ConfigError("input.format: '" + options.format + "' is no format" +
                    (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace tactus
