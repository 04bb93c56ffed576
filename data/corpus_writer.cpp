#include <algorithm>

#include "core/error.h"
#include "core/half.h"
#include "data/corpus.h"
#include "data/corpus_format.h"

namespace tactus {
namespace {

constexpr int64_t kCopyRows = 1 << 15;

void write_blob(h5::File& file, const std::string& name, const std::string& blob) {
  file.write<uint8_t>(name, {static_cast<int64_t>(blob.size())}, reinterpret_cast<const uint8_t*>(blob.data()));
}

void write_offsets(h5::File& file, const std::string& name, const std::vector<int64_t>& offsets) {
  file.write<int64_t>(name, {static_cast<int64_t>(offsets.size())}, offsets.data());
}

void write_text(h5::File& file, const std::string& name, const RaggedText& text) {
  file.write<uint8_t>(name + "/bytes", {static_cast<int64_t>(text.values.size())},
                      reinterpret_cast<const uint8_t*>(text.values.data()));
  write_offsets(file, name + "/offsets", text.offsets);
}

void write_tokens(h5::File& file, const std::string& name, const RaggedTokens& tokens) {
  file.write<int32_t>(name + "/ids", {static_cast<int64_t>(tokens.values.size())}, tokens.values.data());
  write_offsets(file, name + "/offsets", tokens.offsets);
}

}  // namespace

CorpusWriter::CorpusWriter(const std::string& path, const FbankOptions& features, Tokenizer target,
                           std::optional<Tokenizer> source)
    : target_file_(path),
      file_(h5::File::create(target_file_.temporary(), path)),
      target_(std::move(target)),
      source_(std::move(source)),
      bins_(features.mel_bins) {
  file_.set_attribute("/", "format", std::string(corpus_format::kName));
  file_.set_attribute("/", "version", corpus_format::kVersion);
  file_.set_attribute("/", "features", dump_yaml(features));
  file_.set_attribute("/", "feature_hash", options_hash(features));
  write_blob(file_, corpus_format::kTargetTokenizer, target_.blob());
  if (source_) write_blob(file_, corpus_format::kSourceTokenizer, source_->blob());
}

void CorpusWriter::begin_split(const std::string& name, bool has_src_text) {
  if (name.empty() || name == corpus_format::kTokenizerGroup || name.find('/') != std::string::npos)
    throw ConfigError(file_.path() + ": '" + name + "' cannot be the name of a split");
  if (file_.exists(name)) throw ConfigError(file_.path() + ": split '" + name + "' is given twice");
  split_ = name;
  tables_ = {};
  tables_.has_src_text = has_src_text;
  spool_ = FileDescriptor::anonymous_beside(file_.path());
}

void CorpusWriter::add(const ManifestRow& row, std::span<const float> frames) {
  std::vector<uint16_t> bits(frames.size());
  for (size_t k = 0; k < frames.size(); ++k) {
    bits[k] = half_from_float(frames[k]);
    if ((bits[k] & 0x7c00) == 0x7c00) {
      throw DataError(row.id + ": feature " + std::to_string(k % static_cast<size_t>(bins_)) + " of frame " +
                      std::to_string(k / static_cast<size_t>(bins_)) + " is not a finite 16-bit number");
    }
  }
  write_exactly(spool_->get(), bits.data(), bits.size() * 2, file_.path());
  tables_.frame_offsets.push_back(tables_.frame_offsets.back() + static_cast<int64_t>(frames.size()) / bins_);
  tables_.id.add(row.id), tables_.src_text.add(row.src_text), tables_.tgt_text.add(row.tgt_text);
  tables_.speaker.add(row.speaker), tables_.subset.add(row.subset);
  tables_.tgt_tokens.add(target_.encode(row.tgt_text));
  if (source_) tables_.src_tokens.add(source_->encode(row.src_text));
}

void CorpusWriter::copy_spool(const std::string& dataset, int64_t rows) {
  file_.make_half(dataset, rows, bins_);
  std::vector<uint16_t> bits(static_cast<size_t>(std::min(rows, kCopyRows) * bins_));
  for (int64_t begin = 0; begin < rows; begin += kCopyRows) {
    int64_t count = std::min(kCopyRows, rows - begin);
    read_exactly(spool_->get(), bits.data(), count * bins_ * 2, begin * bins_ * 2, file_.path());
    file_.write_half_bits(dataset, begin, count, bits.data());
  }
}

void CorpusWriter::end_split(const DropCounts& dropped) {
  copy_spool(split_ + "/frames", tables_.frame_offsets.back());
  write_offsets(file_, split_ + "/frame_offsets", tables_.frame_offsets);
  write_text(file_, split_ + "/id", tables_.id);
  write_text(file_, split_ + "/src_text", tables_.src_text);
  write_text(file_, split_ + "/tgt_text", tables_.tgt_text);
  write_text(file_, split_ + "/speaker", tables_.speaker);
  write_text(file_, split_ + "/subset", tables_.subset);
  write_tokens(file_, split_ + "/tgt_tokens", tables_.tgt_tokens);
  if (source_) write_tokens(file_, split_ + "/src_tokens", tables_.src_tokens);
  int64_t count = 0;
  for (const auto& [reason, drop] : dropped) count += drop.count;
  file_.set_attribute(split_, "has_src_text", int64_t{tables_.has_src_text});
  file_.set_attribute(split_, "dropped", count);
  file_.set_attribute(split_, "dropped_reasons", to_string(dropped));
  spool_.reset();
}

void CorpusWriter::commit() {
  file_.close();
  target_file_.commit();
}

}  // namespace tactus
