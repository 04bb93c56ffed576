#include "data/input/text_pair.h"

#include <filesystem>
#include <optional>

#include "core/error.h"
#include "data/text/text_lines.h"

namespace tactus {
namespace {

class TextPairReader : public ItemReader {
 public:
  TextPairReader(const InputOptions& o, const std::string& split)
      : split_(split),
        stem_((std::filesystem::path(o.path) / split).string()),
        target_path_(stem_ + "." + o.target),
        target_(target_path_, o.invalid_utf8),
        total_(count_lines(target_path_)) {
    has_src_text_ = !o.source.empty();
    if (has_src_text_) source_.emplace(stem_ + "." + o.source, o.invalid_utf8);
  }
  int64_t total() const override { return total_; }

  bool next(Item& item) override {
    item = {};
    const bool target = target_.next(item.tgt_text), source = source_ ? source_->next(item.src_text) : target;
    replaced_bytes_ = target_.replaced_bytes() + (source_ ? source_->replaced_bytes() : 0);
    if (source != target) {
      throw DataError(source_->where() + " and " + target_.where() +
                      ": the files have different numbers of lines, one ends here; they must go together");
    }
    if (!target) return false;
    const std::string line = std::to_string(target_.number());
    item.id = split_ + "-" + line;
    item.where = target_path_ + ":" + line + " (id " + item.id + ")";
    return true;
  }

 private:
  std::string split_, stem_, target_path_;
  LineReader target_;
  std::optional<LineReader> source_;
  int64_t total_;
};

}  // namespace

std::unique_ptr<ItemReader> open_text_pair(const InputOptions& options, const std::string& split, OnError) {
  if (options.target.empty())
    throw ConfigError("input.format text_pair: input.target is the suffix of the target's files, e.g. de");
  return std::make_unique<TextPairReader>(options, split);
}

}  // namespace tactus
