#include "data/corpus.h"

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/half.h"
#include "data/corpus_format.h"

namespace tactus {
namespace {

/// Offsets must begin at 0, never fall and end at `end`: everything that indexes with them relies on it.
void check_offsets(const std::vector<int64_t>& offsets, int64_t rows, int64_t end, const std::string& where) {
  bool good = static_cast<int64_t>(offsets.size()) == rows + 1 && offsets.front() == 0 && offsets.back() == end &&
              std::is_sorted(offsets.begin(), offsets.end());
  if (!good) throw DataError(where + ": offsets do not fit the data; the corpus is damaged, prepare it again");
}

RaggedText read_text(const h5::File& file, const std::string& name, int64_t rows) {
  RaggedText text;
  std::vector<uint8_t> bytes = file.read<uint8_t>(name + "/bytes");
  text.values.assign(bytes.begin(), bytes.end());
  text.offsets = file.read<int64_t>(name + "/offsets");
  check_offsets(text.offsets, rows, static_cast<int64_t>(text.values.size()), file.path() + ": " + name);
  return text;
}

RaggedTokens read_tokens(const h5::File& file, const std::string& name, int64_t rows, int64_t vocabulary) {
  RaggedTokens tokens;
  tokens.values = file.read<int32_t>(name + "/ids");
  tokens.offsets = file.read<int64_t>(name + "/offsets");
  check_offsets(tokens.offsets, rows, static_cast<int64_t>(tokens.values.size()), file.path() + ": " + name);
  for (int32_t id : tokens.values) {
    if (id >= 0 && id < vocabulary) continue;
    throw DataError(file.path() + ": " + name + ": token id " + std::to_string(id) + " is outside the vocabulary of " +
                    std::to_string(vocabulary) + "; the corpus is damaged, prepare it again");
  }
  return tokens;
}

Tokenizer read_tokenizer(const h5::File& file, const std::string& name) {
  std::vector<uint8_t> bytes = file.read<uint8_t>(name);
  return Tokenizer::from_blob(std::string(bytes.begin(), bytes.end()), file.path() + ": " + name);
}

}  // namespace

void CorpusSplit::read_frames(int64_t i, float* out) const {
  const int64_t values = frames(i) * bins_;
  if (values == 0) return;
  std::vector<uint16_t> bits(static_cast<size_t>(values));
  read_exactly(file_->get(), bits.data(), values * 2, raw_offset_ + tables_.frame_offsets[i] * bins_ * 2, path_);
  for (int64_t k = 0; k < values; ++k) out[k] = float_from_half(bits[k]);
}

std::string CorpusSplit::fingerprint() const {
  std::string text(tables_.id.values.begin(), tables_.id.values.end());
  auto append = [&](const std::vector<int64_t>& numbers) {
    text.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t));
  };
  append(tables_.id.offsets);
  append(tables_.frame_offsets);
  append(tables_.tgt_tokens.offsets);
  return text_hash(text);
}

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
  corpus.raw_ = std::move(raw);
  if (file.exists(corpus_format::kSourceTokenizer))
    corpus.source_ = read_tokenizer(file, corpus_format::kSourceTokenizer);
  try {
    Config::from_text(file.attribute_string("/", "features"), path + ": features").read(corpus.features_);
  } catch (const ConfigError& e) {
    throw DataError(e.what());
  }
  corpus.feature_hash_ = file.attribute_string("/", "feature_hash");
  for (const std::string& name : file.list("/")) {
    if (name != corpus_format::kTokenizerGroup) corpus.split_names_.push_back(name);
  }
  return corpus;
}

CorpusTables Corpus::read_tables(const std::string& name) const {
  CorpusTables t;
  t.frame_offsets = file_.read<int64_t>(name + "/frame_offsets");
  const auto rows = static_cast<int64_t>(t.frame_offsets.size()) - 1;
  std::vector<int64_t> shape = file_.shape(name + "/frames");
  if (shape.size() != 2 || shape[1] != features_.mel_bins) {
    throw DataError(path() + ": " + name + "/frames: expected rows of " + std::to_string(features_.mel_bins) +
                    " values");
  }
  check_offsets(t.frame_offsets, rows, shape[0], path() + ": " + name + "/frame_offsets");
  t.id = read_text(file_, name + "/id", rows);
  t.src_text = read_text(file_, name + "/src_text", rows);
  t.tgt_text = read_text(file_, name + "/tgt_text", rows);
  t.speaker = read_text(file_, name + "/speaker", rows);
  t.subset = read_text(file_, name + "/subset", rows);
  t.tgt_tokens = read_tokens(file_, name + "/tgt_tokens", rows, target_.size());
  if (source_) t.src_tokens = read_tokens(file_, name + "/src_tokens", rows, source_->size());
  t.has_src_text = file_.attribute_int(name, "has_src_text") != 0;
  t.dropped = file_.attribute_int(name, "dropped");
  t.dropped_reasons = file_.attribute_string(name, "dropped_reasons");
  return t;
}

std::shared_ptr<const CorpusSplit> Corpus::split(const std::string& name) {
  if (std::find(split_names_.begin(), split_names_.end(), name) == split_names_.end()) {
    std::string names;
    for (const std::string& n : split_names_) names += (names.empty() ? "" : ", ") + n;
    throw DataError(path() + ": has no split '" + name + "'; it has: " + names);
  }
  auto& slot = splits_[name];
  if (slot) return slot;
  auto split = std::make_shared<CorpusSplit>();
  split->name_ = name, split->path_ = path(), split->file_ = raw_;
  split->tables_ = read_tables(name);
  split->bins_ = features_.mel_bins;
  split->has_src_tokens_ = source_.has_value();
  split->raw_offset_ = file_.raw_offset(name + "/frames");
  if (split->total_frames() > 0 && split->raw_offset_ < 0)
    throw DataError(path() + ": " + name + "/frames is not stored contiguously; prepare the corpus again");
  slot = std::move(split);
  return slot;
}

std::string Corpus::describe() {
  std::ostringstream out;
  out << "corpus " << path() << "\n  features: " << features_.mel_bins << " mel bins, " << features_.window
      << " window, hash " << feature_hash_ << "\n  target tokenizer: " << target_.size() << " pieces, hash "
      << target_.hash() << "\n";
  if (source_) out << "  source tokenizer: " << source_->size() << " pieces, hash " << source_->hash() << "\n";
  for (const std::string& name : split_names_) {
    std::shared_ptr<const CorpusSplit> s = split(name);
    char hours[32];
    std::snprintf(hours, sizeof hours, "%.2f",
                  static_cast<double>(s->total_frames()) * kShiftSamples / kSampleRate / 3600);
    out << "  " << name << ": " << s->size() << " utterances, " << s->total_frames() << " frames (" << hours
        << " h), dropped " << s->dropped() << (s->dropped() > 0 ? ": " + s->dropped_reasons() : "") << "\n";
  }
  return out.str();
}

}  // namespace tactus
