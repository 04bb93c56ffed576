#include "train/metrics/text.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/error.h"

namespace tactus::text {
namespace {

constexpr char32_t kInvalid = 0xFFFFFFFF;

// Reads the code point at `pos` and moves past it. On malformed input returns kInvalid and leaves `pos` alone.
char32_t next_code_point(std::string_view s, size_t& pos) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(pos);
  if (lead < 0x80) {
    ++pos;
    return lead;
  }
  const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || pos + length > s.size()) return kInvalid;
  char32_t c = lead & (0xFFu >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if ((byte(pos + i) & 0xC0) != 0x80) return kInvalid;
    c = (c << 6) | (byte(pos + i) & 0x3F);
  }
  const char32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  if (c < smallest || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return kInvalid;
  pos += length;
  return c;
}

}  // namespace

size_t find_invalid_utf8(std::string_view s) {
  for (size_t pos = 0; pos < s.size();) {
    if (next_code_point(s, pos) == kInvalid) return pos;
  }
  return std::string_view::npos;
}

void check_utf8(std::string_view s, const std::string& where) {
  const size_t bad = find_invalid_utf8(s);
  if (bad != std::string_view::npos) {
    throw DataError(where + ": invalid UTF-8 at byte " + std::to_string(bad + 1) + "; convert the text to UTF-8");
  }
}

std::u32string decode_utf8(std::string_view s) {
  std::u32string out;
  out.reserve(s.size());
  for (size_t pos = 0; pos < s.size();) {
    const char32_t c = next_code_point(s, pos);
    if (c == kInvalid) check_utf8(s, "text");
    out.push_back(c);
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80 | ((c >> shift) & 0x3F))); };
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    tail(0);
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view strip_right(std::string_view s) {
  while (!s.empty()) {
    size_t start = s.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(s[start]) & 0xC0) == 0x80) --start;
    size_t pos = start;
    if (!is_space(next_code_point(s, pos))) break;
    s = s.substr(0, start);
  }
  return s;
}

std::string_view strip(std::string_view s) {
  s = strip_right(s);
  size_t pos = 0;
  while (pos < s.size()) {
    size_t next = pos;
    if (!is_space(next_code_point(s, next))) break;
    pos = next;
  }
  return s.substr(pos);
}

std::vector<std::string_view> split_words(std::string_view s) {
  std::vector<std::string_view> words;
  size_t start = 0;
  for (size_t pos = 0; pos < s.size();) {
    const size_t at = pos;
    const char32_t c = next_code_point(s, pos);
    if (c == kInvalid) check_utf8(s, "text");
    if (!is_space(c)) continue;
    if (at > start) words.push_back(s.substr(start, at - start));
    start = pos;
  }
  if (start < s.size()) words.push_back(s.substr(start));
  return words;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) throw DataError("cannot read " + path.string() + ": is a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) {
    throw DataError("cannot read " + path.string() + ": " + (errno ? std::strerror(errno) : "read failed"));
  }
  std::string_view rest = bytes;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  std::vector<std::string> lines;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    check_utf8(line, path.string() + ":" + std::to_string(lines.size() + 1));
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace tactus::text
