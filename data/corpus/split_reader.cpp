#include "data/corpus/split_reader.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/files/json.h"
#include "core/half.h"
#include "data/corpus/corpus_format.h"
#include "data/corpus/corpus_writer.h"
#include "data/prepare/feature_extractor.h"

namespace tactus {
namespace {

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw DataError(where + ": " + what + "; the corpus is damaged, prepare it again");
}

}  // namespace

std::string_view TextColumn::operator[](int64_t i) const {
  const int64_t begin = offsets_[i], end = offsets_[i + 1];
  if (begin < 0 || begin > end || end > end_) damaged(where_, "offsets do not fit the data");
  return {values_ + begin, static_cast<size_t>(end - begin)};
}

void TokenColumn::append(int64_t i, std::vector<int32_t>& out) const {
  const int64_t begin = offsets_[i], end = offsets_[i + 1];
  if (begin < 0 || begin > end || end > end_) damaged(where_, "offsets do not fit the data");
  for (int64_t k = begin; k < end; ++k) {
    int32_t id = 0;
    std::memcpy(&id, ids_ + k * bytes_, static_cast<size_t>(bytes_));  // little endian
    if (id < 0 || id >= vocabulary_) {
      damaged(where_,
              "token id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(vocabulary_));
    }
    out.push_back(id);
  }
}

std::vector<int32_t> TokenColumn::operator[](int64_t i) const {
  std::vector<int32_t> ids;
  append(i, ids);
  return ids;
}

void CorpusSplit::read_frames(int64_t i, float* out) const {
  const int64_t values = frames(i) * bins_;
  if (values == 0) return;
  if (extractor_ != nullptr) {
    const std::vector<float> computed = extractor_->frames(MediaRef::decode(media_[i]), std::string(id(i)));
    if (static_cast<int64_t>(computed.size()) != values) {
      throw DataError(path_ + ": " + std::string(id(i)) + ": " + MediaRef::decode(media_[i]).to_string() + " now has " +
                      std::to_string(static_cast<int64_t>(computed.size()) / bins_) + " frames, it had " +
                      std::to_string(frames(i)) + "; prepare the corpus again");
    }
    std::copy(computed.begin(), computed.end(), out);
    return;
  }
  const int64_t offset = raw_offset_ + frame_offsets_[i] * bins_ * frame_bytes_;
  if (frame_bytes_ == 4) return read_exactly(file_->get(), out, values * 4, offset, path_);
  // The upper half of the output holds the 16-bit values until they are widened in place, from the front: a block is
  // taken out before anything reaches it.
  const auto* bits = reinterpret_cast<const uint16_t*>(out) + values;
  read_exactly(file_->get(), reinterpret_cast<uint16_t*>(out) + values, values * 2, offset, path_);
  constexpr int64_t kBlock = 2048;
  uint16_t block[kBlock];
  for (int64_t k = 0; k < values; k += kBlock) {
    const int64_t count = std::min(kBlock, values - k);
    std::memcpy(block, bits + k, static_cast<size_t>(count) * sizeof *block);
    floats_from_halves(block, out + k, count);
  }
}

std::string CorpusSplit::fingerprint() const {
  std::string text;
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t lengths[2] = {frames(i), tgt_tokens_.length(i)};
    text.append(id_[i]).append(reinterpret_cast<const char*>(lengths), sizeof lengths);
    // Hashed in pieces, so that a large split needs no copy of its ids.
    if (text.size() > (1 << 16)) text = text_hash(text);
  }
  return text_hash(text);
}

SplitReader::SplitReader(const h5::File& file, std::shared_ptr<const FileDescriptor> raw,
                         std::shared_ptr<const MappedFile> map, const FeatureOptions& features,
                         const std::string& store)
    : file_(file), raw_(std::move(raw)), map_(std::move(map)), features_(features), store_(store) {}

const int64_t* SplitReader::offsets(const std::string& name, int64_t rows) const {
  const h5::RawDataset raw = file_.raw(name, map_->size());
  const std::string where = file_.path() + ": " + name;
  if (raw.type != h5::Stored::i64 || raw.shape != std::vector<int64_t>{rows + 1} || raw.offset % 8 != 0)
    damaged(where, "offsets do not fit the data");
  return reinterpret_cast<const int64_t*>(map_->data() + raw.offset);
}

TextColumn SplitReader::text(const std::string& name, int64_t rows) const {
  TextColumn column;
  column.where_ = file_.path() + ": " + name;
  const h5::RawDataset bytes = file_.raw(name + "/bytes", map_->size());
  if (bytes.type != h5::Stored::u8 || bytes.shape.size() != 1) damaged(column.where_, "expected bytes");
  column.offsets_ = offsets(name + "/offsets", rows);
  column.values_ = reinterpret_cast<const char*>(map_->data()) + std::max<int64_t>(bytes.offset, 0);
  column.rows_ = rows, column.end_ = bytes.shape[0];
  return column;
}

TokenColumn SplitReader::tokens(const std::string& name, int64_t rows, int64_t vocabulary) const {
  TokenColumn column;
  column.where_ = file_.path() + ": " + name;
  const h5::RawDataset ids = file_.raw(name + "/ids", map_->size());
  const bool integers = ids.type == h5::Stored::u8 || ids.type == h5::Stored::u16 || ids.type == h5::Stored::i32;
  if (!integers || ids.shape.size() != 1) damaged(column.where_, "expected token ids");
  column.offsets_ = offsets(name + "/offsets", rows);
  column.ids_ = map_->data() + std::max<int64_t>(ids.offset, 0);
  column.rows_ = rows, column.end_ = ids.shape[0], column.bytes_ = h5::size_of(ids.type);
  column.vocabulary_ = static_cast<int32_t>(vocabulary);
  // Plans read every length, so damage is better found before.
  if (!std::is_sorted(column.offsets_, column.offsets_ + rows + 1) || column.offsets_[0] != 0 ||
      column.offsets_[rows] != column.end_)
    damaged(column.where_, "offsets do not fit the data");
  return column;
}

void SplitReader::read_frames_table(CorpusSplit& split, const std::string& name) const {
  const std::string table = name + "/frame_offsets", where = file_.path() + ": " + table;
  const std::vector<int64_t> shape = file_.shape(table);
  if (shape.size() != 1 || shape[0] < 1) damaged(where, "expected offsets");
  const int64_t rows = shape[0] - 1;
  split.frame_offsets_ = offsets(table, rows);
  if (split.frame_offsets_[0] != 0 || !std::is_sorted(split.frame_offsets_, split.frame_offsets_ + rows + 1))
    damaged(where, "offsets do not fit the data");
  const int64_t total = split.frame_offsets_[rows], width = features_.frame_width();
  split.bins_ = width;
  if (width == 0) {
    if (total != 0) damaged(where, "frames in a corpus of text");
    return;
  }
  const std::vector<double> moments = file_.read<double>(name + "/moments");
  if (static_cast<int64_t>(moments.size()) != 2 * width) damaged(file_.path() + ": " + name + "/moments", "wrong size");
  split.moments_ = {total, {moments.begin(), moments.begin() + width}, {moments.begin() + width, moments.end()}};
  if (store_ == "on_the_fly") {
    split.media_ = text(name + "/media", rows);
    split.extractor_ = std::make_shared<const FeatureExtractor>(features_);
    return;
  }
  const h5::RawDataset frames = file_.raw(name + "/frames", map_->size());
  const bool real = frames.type == h5::Stored::f16 || frames.type == h5::Stored::f32;
  if (!real || frames.shape != std::vector<int64_t>{total, width}) {
    damaged(file_.path() + ": " + name + "/frames",
            "expected " + std::to_string(total) + " rows of " + std::to_string(width) + " values");
  }
  split.raw_offset_ = frames.offset, split.frame_bytes_ = h5::size_of(frames.type);
}

std::shared_ptr<const CorpusSplit> SplitReader::read(const std::string& name, int64_t target_vocabulary,
                                                     int64_t source_vocabulary) const {
  auto split = std::make_shared<CorpusSplit>();
  split->name_ = name, split->path_ = file_.path(), split->file_ = raw_, split->map_ = map_;
  read_frames_table(*split, name);
  const int64_t rows = file_.shape(name + "/frame_offsets")[0] - 1;
  split->id_ = text(name + "/id", rows);
  split->src_text_ = text(name + "/src_text", rows);
  split->src2_text_ = text(name + "/src2_text", rows);
  split->tgt_text_ = text(name + "/tgt_text", rows);
  split->speaker_ = text(name + "/speaker", rows);
  split->subset_ = text(name + "/subset", rows);
  const std::string extra = name + "/" + corpus_format::kExtraGroup;
  if (file_.exists(extra)) {
    for (const std::string& column : file_.list(extra)) split->extra_[column] = text(extra + "/" + column, rows);
  }
  split->tgt_tokens_ = tokens(name + "/tgt_tokens", rows, target_vocabulary);
  if (source_vocabulary > 0) {
    split->src_tokens_ = tokens(name + "/src_tokens", rows, source_vocabulary);
    if (file_.exists(name + "/src2_tokens"))
      split->src2_tokens_ = tokens(name + "/src2_tokens", rows, source_vocabulary);
  }
  split->has_src_text_ = file_.attribute_int(name, "has_src_text") != 0;
  const std::string report = file_.attribute_string(name, "report"), where = file_.path() + ": " + name + ": report";
  const DropCounts drops = drops_of_report(report, where);
  split->dropped_ = total(drops), split->dropped_reasons_ = to_string(drops);
  split->unknown_tokens_ = parse_json(report, where).at("unknown_tokens").as_int();
  return split;
}

}  // namespace tactus
