// Progress and warnings for people, on stderr. On a terminal a live line is rewritten in place; elsewhere lines are
// plain, and live ones are thinned out so that log files stay small. All functions may be called from any thread; lines
// never interleave.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

namespace tactus {

class Log {
 public:
  using Clock = std::chrono::steady_clock;

  /// `terminal`: rewrite the live line in place. `interval`: seconds between live lines where it is not a terminal.
  /// `columns`: width to cut live lines to; 0 asks the terminal each time.
  Log(std::FILE* out, bool terminal, double interval = 10, int columns = 0);
  ~Log() { end_live(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// State of a running job; replaced by the next one. Line ends in it become spaces.
  void live(const std::string& text);
  /// Keeps the live line as it stands (elsewhere: prints the last one if it was thinned out) and begins a new one.
  void end_live();
  /// A line of its own, above the live line.
  void note(const std::string& text);
  /// The same, as "warning: ...".
  void warn(const std::string& text) { note("warning: " + text); }

 private:
  int columns() const;
  void erase_live();
  void draw_live();

  std::mutex mutex_;
  std::FILE* out_;
  bool terminal_;
  std::chrono::duration<double> interval_;
  int fixed_columns_;
  std::string live_;
  bool drawn_ = false;  // the live line stands on the terminal
  bool owed_ = false;   // the live line was thinned out
  bool ever_ = false;
  Clock::time_point last_;
};

/// The log of this process. Terminal or not is decided by stderr; TERM=dumb counts as not.
Log& stderr_log();
inline void warn(const std::string& text) { stderr_log().warn(text); }
inline void note(const std::string& text) { stderr_log().note(text); }

/// The first `columns` columns of UTF-8 text; wide East Asian characters count two. Never cuts inside a character.
std::string cut_to_width(const std::string& text, int columns);

}  // namespace tactus
