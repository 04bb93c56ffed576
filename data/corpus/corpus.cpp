#include "data/corpus/corpus.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "core/error.h"
#include "data/corpus/corpus_format.h"
#include "data/corpus/split_reader.h"

namespace tactus {
namespace {

Tokenizer read_tokenizer(const h5::File& file, const std::string& name) {
  std::vector<uint8_t> bytes = file.read<uint8_t>(name);
  return Tokenizer::from_blob(std::string(bytes.begin(), bytes.end()), file.path() + ": " + name);
}

}  // namespace

Corpus Corpus::open(const std::string& path) {
  auto raw = std::make_shared<const FileDescriptor>(FileDescriptor::open_for_reading(path));
  h5::File file = h5::File::open(path);
  if (!file.has_attribute("/", "format") || file.attribute_string("/", "format") != corpus_format::kName)
    throw DataError(path + ": not a corpus file; make one with 'tactus prepare'");
  if (int64_t version = file.attribute_int("/", "version"); version != corpus_format::kVersion) {
    throw DataError(path + ": corpus version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(corpus_format::kVersion) + "; prepare it again");
  }
  Corpus corpus(file, read_tokenizer(file, corpus_format::kTargetTokenizer));
  corpus.map_ = std::make_shared<const MappedFile>(*raw, path);
  corpus.raw_ = std::move(raw);
  if (file.exists(corpus_format::kSourceTokenizer))
    corpus.source_ = read_tokenizer(file, corpus_format::kSourceTokenizer);
  try {
    Config::from_text(file.attribute_string("/", "features"), path + ": features").read(corpus.features_);
  } catch (const ConfigError& e) {
    throw DataError(e.what());
  }
  corpus.feature_hash_ = file.attribute_string("/", "feature_hash");
  corpus.store_ = file.attribute_string("/", "store");
  for (const std::string& name : file.list("/")) {
    if (name != corpus_format::kTokenizerGroup) corpus.split_names_.push_back(name);
  }
  return corpus;
}

std::shared_ptr<const CorpusSplit> Corpus::split(const std::string& name) {
  if (std::find(split_names_.begin(), split_names_.end(), name) == split_names_.end()) {
    std::string names;
    for (const std::string& n : split_names_) names += (names.empty() ? "" : ", ") + n;
    throw DataError(path() + ": has no split '" + name + "'; it has: " + names);
  }
  auto& slot = splits_[name];
  if (!slot) {
    SplitReader reader(file_, raw_, map_, features_, store_);
    slot = reader.read(name, target_.size(), source_ ? source_->size() : 0);
  }
  return slot;
}

std::string Corpus::describe() {
  std::ostringstream out;
  out << "corpus " << path() << "\n  features: ";
  if (features_.kind == "none") out << "none (text)";
  if (features_.kind == "fbank") out << features_.mel_bins << " mel bins, " << features_.window << " window";
  if (features_.kind == "stored") out << features_.layers << " x " << features_.width << " numbers a frame";
  out << ", " << store_ << ", hash " << feature_hash_ << "\n  target tokenizer: " << target_.kind() << ", "
      << target_.size() << " pieces, hash " << target_.hash() << "\n";
  if (source_) {
    out << "  source tokenizer: " << source_->kind() << ", " << source_->size() << " pieces, hash " << source_->hash()
        << "\n";
  }
  for (const std::string& name : split_names_) {
    std::shared_ptr<const CorpusSplit> s = split(name);
    out << "  " << name << ": " << s->size() << " items, ";
    if (s->has_frames()) {
      char hours[32];
      std::snprintf(hours, sizeof hours, "%.2f",
                    static_cast<double>(s->total_frames()) / features_.frames_per_second / 3600);
      out << s->total_frames() << " frames (" << hours << " h), ";
    }
    if (s->has_src_tokens()) out << s->src_tokens().total() + s->src2_tokens().total() << " source tokens, ";
    out << s->tgt_tokens().total() << " target tokens, " << s->unknown_tokens() << " unknown; dropped " << s->dropped()
        << (s->dropped() > 0 ? ": " + s->dropped_reasons() : "") << "\n";
  }
  return out.str();
}

}  // namespace tactus
