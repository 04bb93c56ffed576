#include "data/text/text_lines.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"

namespace tactus {
namespace {

constexpr size_t kBlockBytes = 1 << 16;

/// Length of the well-formed UTF-8 sequence that begins at text[i] (Unicode 15, table 3-7), or 0.
size_t sequence_length(std::string_view text, size_t i) {
  auto byte = [&](size_t k) -> unsigned { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  auto continues = [&](size_t k, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(k) >= low && byte(k) <= high;
  };
  unsigned lead = byte(i);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(i + 1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    unsigned low = lead == 0xe0 ? 0xa0 : 0x80, high = lead == 0xed ? 0x9f : 0xbf;
    return continues(i + 1, low, high) && continues(i + 2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    unsigned low = lead == 0xf0 ? 0x90 : 0x80, high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(i + 1, low, high) && continues(i + 2) && continues(i + 3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

int64_t first_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t length = sequence_length(text, i);
    if (length == 0) return static_cast<int64_t>(i);
    i += length;
  }
  return -1;
}

std::string with_invalid_utf8_replaced(std::string_view text, int64_t& replaced) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text, i);
    if (length > 0) {
      out += text.substr(i, length);
      i += length;
      continue;
    }
    // A maximal part: the lead and the continuations after which a good sequence could still have come.
    size_t part = 1;
    for (std::string probe(1, text[i]); part < 3 && i + part < text.size(); ++part) {
      probe += text[i + part];
      bool could_go_on = false;
      for (const char* rest : {"\x80", "\x80\x80"}) could_go_on |= sequence_length(probe + rest, 0) > part + 1;
      if (!could_go_on) break;
    }
    out += "\xef\xbf\xbd";
    replaced += static_cast<int64_t>(part);
    i += part;
  }
  return out;
}

int64_t count_lines(const std::string& path, int64_t most_bytes) {
  const FileDescriptor file = FileDescriptor::open_for_reading(path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > most_bytes) return -1;
  std::string block(kBlockBytes * 16, '\0');
  int64_t lines = 0, at = 0;
  char last = '\n';
  for (ssize_t got; (got = pread(file.get(), block.data(), block.size(), at)) > 0; at += got) {
    lines += std::count(block.begin(), block.begin() + got, '\n');
    last = block[static_cast<size_t>(got) - 1];
  }
  return lines + (last != '\n');
}

InvalidUtf8 invalid_utf8_from_string(const std::string& name) {
  if (name == "error") return InvalidUtf8::error;
  if (name == "replace") return InvalidUtf8::replace;
  throw ConfigError("invalid_utf8 is '" + name + "', expected error or replace");
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

std::vector<std::string_view> split_tabs(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    size_t end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return fields;
    begin = end + 1;
  }
}

LineReader::LineReader(const std::string& path, InvalidUtf8 policy)
    : path_(path), file_(FileDescriptor::open_for_reading(path)), policy_(policy) {
  while (block_.size() < 3 && fill()) {
  }
  if (block_.starts_with("\xef\xbb\xbf")) position_ = 3;
}

bool LineReader::fill() {
  block_.erase(0, position_);
  position_ = 0;
  size_t had = block_.size();
  block_.resize(had + kBlockBytes);
  ssize_t got;
  do got = ::read(file_.get(), block_.data() + had, kBlockBytes);
  while (got < 0 && errno == EINTR);
  if (got < 0) throw DataError(path_ + ": cannot read: " + std::generic_category().message(errno));
  block_.resize(had + static_cast<size_t>(got));
  return got > 0;
}

bool LineReader::next(std::string& line) {
  size_t searched = position_, end;
  while ((end = block_.find('\n', searched)) == std::string::npos) {
    size_t unread = block_.size() - position_;
    if (static_cast<int64_t>(unread) > kMaxLineBytes) break;
    if (!fill()) break;
    searched = position_ + unread;
  }
  bool last = end == std::string::npos;
  if (last) end = block_.size();
  if (last && end == position_) return false;
  ++number_;
  if (static_cast<int64_t>(end - position_) > kMaxLineBytes) too_long();
  line.assign(block_, position_, end - position_);
  position_ = last ? end : end + 1;
  if (line.ends_with('\r')) line.pop_back();
  check(line);
  return true;
}

void LineReader::too_long() const {
  throw DataError(where() + ": line is longer than " + std::to_string(kMaxLineBytes) +
                  " bytes; is this a text file with \\n at the end of its lines?");
}

void LineReader::check(std::string& line) {
  if (size_t nul = line.find('\0'); nul != std::string::npos)
    throw DataError(where() + ": NUL byte at column " + std::to_string(nul + 1) + "; expected UTF-8 text");
  const int64_t bad = first_invalid_utf8(line);
  if (bad < 0) return;
  if (policy_ == InvalidUtf8::replace) {
    line = with_invalid_utf8_replaced(line, replaced_bytes_);
    return;
  }
  throw DataError(where() + ": invalid UTF-8 at byte " + std::to_string(bad + 1) +
                  " of the line; convert the file to UTF-8");
}

std::vector<std::string> read_lines(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

}  // namespace tactus
