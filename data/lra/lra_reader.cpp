#include "data/lra/lra_reader.h"

namespace tactus {

LraSplit lra_split(const std::string& name, const std::string& format) {
  if (name == "train") return LraSplit::train;
  if (name == "valid" || name == "dev") return LraSplit::valid;
  if (name == "test") return LraSplit::test;
  throw ConfigError(format + " has no split '" + name + "', expected train, valid (or dev) or test");
}

void check_lra_options(const InputOptions& options) {
  const auto refuse = [&](const char* key, const std::string& value) {
    if (!value.empty())
      throw ConfigError("input." + std::string(key) + " is '" + value + "', but format " + options.format +
                        " has no use for it; remove it");
  };
  refuse("audio_root", options.audio_root);
  refuse("source", options.source);
  refuse("target", options.target);
}

std::filesystem::path find_lra_folder(const std::string& path, std::initializer_list<std::string> folders,
                                      const std::string& file) {
  std::string tried;
  for (const std::string& folder : folders) {
    const std::filesystem::path candidate =
        folder.empty() ? std::filesystem::path(path) : std::filesystem::path(path) / folder;
    std::error_code ignored;
    if (std::filesystem::exists(candidate / file, ignored)) return candidate;
    tried += (tried.empty() ? "" : " nor ") + (candidate / file).string();
  }
  throw DataError("input.path " + path + ": there is no " + tried);
}

}  // namespace tactus
