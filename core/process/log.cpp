#include "core/process/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tactus {
namespace {

/// Bytes of the UTF-8 character that begins at `i`, and its code point. A stray byte is a character of its own.
size_t decode(const std::string& text, size_t i, uint32_t& code) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  code = length == 1 ? lead : lead & (0x7F >> length);
  for (size_t k = 1; k < length; ++k) {
    if (i + k >= text.size() || (byte(i + k) & 0xC0) != 0x80) return code = lead, 1;
    code = code << 6 | (byte(i + k) & 0x3F);
  }
  return length;
}

int width_of(uint32_t code) {
  if (code >= 0x0300 && code <= 0x036F) return 0;  // combining accents
  const bool wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
                    (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
                    (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                    (code >= 0x1F300 && code <= 0x1FAFF) || (code >= 0x20000 && code <= 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

std::string cut_to_width(const std::string& text, int columns) {
  int used = 0;
  size_t i = 0;
  while (i < text.size()) {
    uint32_t code;
    const size_t length = decode(text, i, code);
    used += width_of(code);
    if (used > columns) break;
    i += length;
  }
  return text.substr(0, i);
}

Log::Log(std::FILE* out, bool terminal, double interval, int columns)
    : out_(out), terminal_(terminal), interval_(interval), fixed_columns_(columns) {}

int Log::columns() const {
  if (fixed_columns_ > 0) return fixed_columns_;
  winsize size = {};
  // The last column stays free: writing into it makes some terminals wrap.
  return ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

void Log::erase_live() {
  if (drawn_) std::fputs("\r\x1b[K", out_);
  drawn_ = false;
}

void Log::draw_live() {
  std::fputs(("\r" + cut_to_width(live_, columns()) + "\x1b[K").c_str(), out_);
  drawn_ = true;
}

void Log::live(const std::string& text) {
  std::lock_guard lock(mutex_);
  live_ = text;
  std::replace(live_.begin(), live_.end(), '\n', ' ');
  std::replace(live_.begin(), live_.end(), '\r', ' ');
  if (terminal_) {
    draw_live();
  } else if (const auto now = Clock::now(); !ever_ || now - last_ >= interval_) {
    std::fputs((live_ + "\n").c_str(), out_);
    last_ = now;
    ever_ = true;
    owed_ = false;
  } else {
    owed_ = true;
    return;
  }
  std::fflush(out_);
}

void Log::end_live() {
  std::lock_guard lock(mutex_);
  if (drawn_) std::fputs("\n", out_);
  if (owed_) std::fputs((live_ + "\n").c_str(), out_);
  drawn_ = owed_ = ever_ = false;
  live_.clear();
  std::fflush(out_);
}

void Log::note(const std::string& text) {
  std::lock_guard lock(mutex_);
  const bool redraw = drawn_;
  erase_live();
  std::fputs((text + "\n").c_str(), out_);
  if (redraw) draw_live();
  std::fflush(out_);
}

Log& stderr_log() {
  static const char* term = std::getenv("TERM");
  static Log log(stderr, isatty(STDERR_FILENO) && !(term && std::strcmp(term, "dumb") == 0));
  return log;
}

}  // namespace tactus
