#include "data/corpus/corpus_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/files/json.h"
#include "core/half.h"
#include "data/corpus/corpus_format.h"

namespace tactus {
namespace {

constexpr size_t kSpoolBytes = 1 << 18;

/// A column of values of any length: the values, and the offsets between rows in elements.
struct RaggedSpool {
  Spool values, offsets;
  int64_t end = 0;
  explicit RaggedSpool(const std::string& beside) : values(beside), offsets(beside) { offsets.append(end); }
  void add(const void* bytes, size_t count, int64_t elements) {
    values.append(bytes, count);
    offsets.append(end += elements);
  }
  void add(std::string_view text) { add(text.data(), text.size(), static_cast<int64_t>(text.size())); }
};

/// The narrowest type that holds every id of a vocabulary.
h5::Stored token_type(int64_t vocabulary) {
  return vocabulary <= 256 ? h5::Stored::u8 : vocabulary <= 65536 ? h5::Stored::u16 : h5::Stored::i32;
}

void add_tokens(RaggedSpool& spool, const std::vector<int32_t>& ids, h5::Stored type) {
  const auto width = static_cast<size_t>(h5::size_of(type));
  std::vector<uint8_t> bytes(ids.size() * width);
  for (size_t i = 0; i < ids.size(); ++i) std::memcpy(bytes.data() + i * width, &ids[i], width);  // little endian
  spool.add(bytes.data(), bytes.size(), static_cast<int64_t>(ids.size()));
}

/// Names of columns as names of HDF5 objects: without slashes, not empty, not ".", each once.
std::vector<std::string> object_names(const std::vector<std::string>& columns) {
  std::vector<std::string> names;
  for (std::string name : columns) {
    std::replace(name.begin(), name.end(), '/', '_');
    if (name.empty() || name == ".") name = "column";
    while (std::find(names.begin(), names.end(), name) != names.end()) name += "_";
    names.push_back(std::move(name));
  }
  return names;
}

void copy_bytes(int from, int64_t from_offset, const std::string& from_path, int64_t bytes, int to, int64_t to_offset,
                const std::string& to_path) {
  std::vector<char> block(static_cast<size_t>(std::min<int64_t>(bytes, 1 << 22)));
  for (int64_t at = 0; at < bytes;) {
    const int64_t count = std::min<int64_t>(static_cast<int64_t>(block.size()), bytes - at);
    read_exactly(from, block.data(), count, from_offset + at, from_path);
    write_exactly_at(to, block.data(), count, to_offset + at, to_path);
    at += count;
  }
}

[[noreturn]] void not_finite(const Item& item, int64_t at, int64_t width, const char* type) {
  throw DataError((item.where.empty() ? item.id : item.where) + ": feature " + std::to_string(at % width) +
                  " of frame " + std::to_string(at / width) + " is not a finite " + type + " number");
}

}  // namespace

FrameStore frame_store_from_string(const std::string& name) {
  if (name == "f16") return FrameStore::f16;
  if (name == "f32") return FrameStore::f32;
  if (name == "on_the_fly") return FrameStore::on_the_fly;
  throw ConfigError("store is '" + name + "', expected f16, f32 or on_the_fly");
}

EncodedItem ItemEncoder::encode(const Item& item, std::span<const float> frames) const {
  EncodedItem e;
  const int64_t width = options_.features.frame_width(), values = static_cast<int64_t>(frames.size());
  const bool half = options_.store == FrameStore::f16;
  e.frames = width == 0 ? 0 : values / width;
  e.moments.assign(static_cast<size_t>(2 * width), 0.0);
  std::vector<uint16_t> bits(half ? frames.size() : 0);
  double* squares = e.moments.data() + width;
  for (int64_t k = 0; k < values; ++k) {
    float x = frames[k];
    if (half) {
      bits[k] = half_from_float(x);
      x = float_from_half(bits[k]);
    }
    if (!std::isfinite(x)) not_finite(item, k, width, half ? "16-bit" : "32-bit");
    e.moments[k % width] += x;
    squares[k % width] += static_cast<double>(x) * x;
  }
  const void* from = half ? static_cast<const void*>(bits.data()) : frames.data();
  if (options_.store != FrameStore::on_the_fly && values > 0) {
    e.frame_bytes.resize(frames.size() * (half ? 2 : 4));
    std::memcpy(e.frame_bytes.data(), from, e.frame_bytes.size());
  }
  e.tgt_tokens = target_.encode(item.tgt_text);
  if (source_) e.src_tokens = source_->encode(item.src_text), e.src2_tokens = source_->encode(item.src2_text);
  return e;
}

Spool::Spool(const std::string& beside) : path_(beside), file_(FileDescriptor::anonymous_beside(beside)) {}

void Spool::append(const void* bytes, size_t count) {
  if (count == 0) return;
  size_ += static_cast<int64_t>(count);
  if (buffer_.size() + count > kSpoolBytes) flush();
  if (count > kSpoolBytes) return write_exactly(file_.get(), bytes, count, path_);
  buffer_.append(static_cast<const char*>(bytes), count);
}

void Spool::flush() {
  write_exactly(file_.get(), buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
}

void Spool::copy_to(int fd, int64_t offset, const std::string& path) {
  flush();
  copy_bytes(file_.get(), 0, path_, size_, fd, offset, path);
}

struct CorpusWriter::Split {
  std::string name;
  SplitColumns columns;
  RaggedSpool id, src_text, src2_text, tgt_text, speaker, subset, media;
  RaggedSpool tgt_tokens, src_tokens, src2_tokens;
  std::vector<std::unique_ptr<RaggedSpool>> extra;
  Spool frames, frame_offsets;
  struct Range {
    std::string path;
    int64_t offset, bytes;
  };
  std::vector<Range> frame_ranges;  // instead of `frames`
  int64_t items = 0, total_frames = 0;
  std::vector<double> moments;

  Split(const std::string& path, std::string split_name, const SplitColumns& c, int64_t width)
      : name(std::move(split_name)),
        columns(c),
        id(path),
        src_text(path),
        src2_text(path),
        tgt_text(path),
        speaker(path),
        subset(path),
        media(path),
        tgt_tokens(path),
        src_tokens(path),
        src2_tokens(path),
        frames(path),
        frame_offsets(path),
        moments(static_cast<size_t>(2 * width), 0.0) {
    for (size_t i = 0; i < c.extra.size(); ++i) extra.push_back(std::make_unique<RaggedSpool>(path));
    frame_offsets.append(total_frames);
  }
};

CorpusWriter::CorpusWriter(const std::string& path, CorpusOptions options, Tokenizer target,
                           std::optional<Tokenizer> source)
    : target_file_(path),
      file_(h5::File::create(target_file_.temporary(), path)),
      encoder_(std::move(options), std::move(target), std::move(source)),
      raw_(FileDescriptor::open_for_writing(target_file_.temporary())) {
  const CorpusOptions& o = encoder_.options();
  file_.set_attribute("/", "format", std::string(corpus_format::kName));
  file_.set_attribute("/", "version", corpus_format::kVersion);
  file_.set_attribute("/", "features", dump_yaml(o.features));
  file_.set_attribute("/", "feature_hash", options_hash(o.features));
  file_.set_attribute("/", "store",
                      std::string(o.store == FrameStore::f16   ? "f16"
                                  : o.store == FrameStore::f32 ? "f32"
                                                               : "on_the_fly"));
  auto write_blob = [&](const char* name, const std::string& blob) {
    file_.write<uint8_t>(name, {static_cast<int64_t>(blob.size())}, reinterpret_cast<const uint8_t*>(blob.data()));
  };
  write_blob(corpus_format::kTargetTokenizer, encoder_.target().blob());
  if (encoder_.source()) write_blob(corpus_format::kSourceTokenizer, encoder_.source()->blob());
}

CorpusWriter::~CorpusWriter() = default;

void CorpusWriter::begin_split(const std::string& name, const SplitColumns& columns) {
  if (name.empty() || name == corpus_format::kTokenizerGroup || name.find('/') != std::string::npos)
    throw ConfigError(file_.path() + ": '" + name + "' cannot be the name of a split");
  if (file_.exists(name)) throw ConfigError(file_.path() + ": split '" + name + "' is given twice");
  SplitColumns named = columns;
  named.extra = object_names(columns.extra);
  split_ = std::make_unique<Split>(file_.path(), name, named, encoder_.options().features.frame_width());
}

void CorpusWriter::add(const Item& item, const EncodedItem& e) {
  Split& s = *split_;
  const CorpusOptions& o = encoder_.options();
  ++s.items;
  s.frames.append(e.frame_bytes.data(), e.frame_bytes.size());
  s.frame_offsets.append(s.total_frames += e.frames);
  for (size_t k = 0; k < s.moments.size(); ++k) s.moments[k] += e.moments[k];
  s.id.add(item.id), s.speaker.add(item.speaker), s.subset.add(item.subset);
  const bool keep_source = o.copy_text && !s.columns.binary_source;
  s.src_text.add(keep_source ? item.src_text : std::string_view());
  s.src2_text.add(keep_source ? item.src2_text : std::string_view());
  s.tgt_text.add(o.copy_text ? item.tgt_text : std::string_view());
  if (o.store == FrameStore::on_the_fly) s.media.add(item.media.encode());
  for (size_t i = 0; i < s.extra.size(); ++i) s.extra[i]->add(i < item.extra.size() ? item.extra[i] : "");
  add_tokens(s.tgt_tokens, e.tgt_tokens, token_type(encoder_.target().size()));
  if (!encoder_.source()) return;
  add_tokens(s.src_tokens, e.src_tokens, token_type(encoder_.source()->size()));
  if (s.columns.has_src2_text) add_tokens(s.src2_tokens, e.src2_tokens, token_type(encoder_.source()->size()));
}

void CorpusWriter::write_column(const std::string& name, h5::Stored type, std::vector<int64_t> shape, Spool& spool) {
  const int64_t offset = file_.make_contiguous(name, type, shape);
  if (offset >= 0) spool.copy_to(raw_.get(), offset, file_.path());
}

void CorpusWriter::add_frames(const std::string& path, int64_t offset, int64_t bytes) {
  if (bytes > 0) split_->frame_ranges.push_back({path, offset, bytes});
}

void CorpusWriter::write_frames() {
  Split& s = *split_;
  const CorpusOptions& o = encoder_.options();
  const int64_t width = o.features.frame_width();
  if (width == 0 || o.store == FrameStore::on_the_fly) return;
  const h5::Stored type = o.store == FrameStore::f16 ? h5::Stored::f16 : h5::Stored::f32;
  int64_t offset = file_.make_contiguous(s.name + "/frames", type, {s.total_frames, width});
  if (offset < 0) return;
  if (s.frame_ranges.empty()) return s.frames.copy_to(raw_.get(), offset, file_.path());
  for (const Split::Range& r : s.frame_ranges) {
    const FileDescriptor from = FileDescriptor::open_for_reading(r.path);
    copy_bytes(from.get(), r.offset, r.path, r.bytes, raw_.get(), offset, file_.path());
    offset += r.bytes;
  }
}

void CorpusWriter::end_split(const std::string& report) {
  Split& s = *split_;
  const CorpusOptions& o = encoder_.options();
  const int64_t width = o.features.frame_width();
  auto write_text = [&](const std::string& name, RaggedSpool& column) {
    write_column(s.name + "/" + name + "/bytes", h5::Stored::u8, {column.values.size()}, column.values);
    write_column(s.name + "/" + name + "/offsets", h5::Stored::i64, {s.items + 1}, column.offsets);
  };
  auto write_tokens = [&](const std::string& name, RaggedSpool& column, int64_t vocabulary) {
    write_column(s.name + "/" + name + "/ids", token_type(vocabulary), {column.end}, column.values);
    write_column(s.name + "/" + name + "/offsets", h5::Stored::i64, {s.items + 1}, column.offsets);
  };
  write_frames();
  write_column(s.name + "/frame_offsets", h5::Stored::i64, {s.items + 1}, s.frame_offsets);
  if (width > 0) file_.write<double>(s.name + "/moments", {2, width}, s.moments.data());
  write_text("id", s.id), write_text("src_text", s.src_text), write_text("src2_text", s.src2_text);
  write_text("tgt_text", s.tgt_text), write_text("speaker", s.speaker), write_text("subset", s.subset);
  if (o.store == FrameStore::on_the_fly) write_text("media", s.media);
  for (size_t i = 0; i < s.extra.size(); ++i)
    write_text(std::string(corpus_format::kExtraGroup) + "/" + s.columns.extra[i], *s.extra[i]);
  write_tokens("tgt_tokens", s.tgt_tokens, encoder_.target().size());
  if (encoder_.source()) {
    write_tokens("src_tokens", s.src_tokens, encoder_.source()->size());
    if (s.columns.has_src2_text) write_tokens("src2_tokens", s.src2_tokens, encoder_.source()->size());
  }
  file_.set_attribute(s.name, "has_src_text", int64_t{s.columns.has_src_text});
  file_.set_attribute(s.name, "report", report);
  split_.reset();
}

void CorpusWriter::commit() {
  file_.close();
  target_file_.commit();
}

std::string report_json(int64_t items, int64_t kept, int64_t unknown_tokens, const DropCounts& dropped) {
  JsonWriter json;
  json.begin_object().field("items", items).field("kept", kept).field("unknown_tokens", unknown_tokens);
  json.key("dropped").begin_object();
  for (const auto& [reason, drop] : dropped) {
    json.key(reason).begin_object().field("count", drop.count).field("ids", drop.ids).field("first", drop.first);
    json.end_object();
  }
  return json.end_object().end_object().str();
}

DropCounts drops_of_report(const std::string& report, const std::string& where) {
  DropCounts drops;
  const Json json = parse_json(report, where);
  for (const auto& [reason, drop] : json.at("dropped").members()) {
    DropCount& d = drops[reason];
    d.count = drop.at("count").as_int(), d.first = drop.at("first").as_string();
    for (const Json& id : drop.at("ids").items()) d.ids.push_back(id.as_string());
  }
  return drops;
}

}  // namespace tactus
