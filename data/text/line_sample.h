// A bounded sample of a stream of lines of unknown length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tactus {

/// Keeps every k-th line, with k doubled whenever the sample is full: between half of the limit and the limit, spread
/// evenly, the same for the same stream.
class LineSample {
 public:
  explicit LineSample(int64_t limit) : limit_(limit < 1 ? 1 : limit) {}
  void add(const std::string& line) {
    if (seen_++ % stride_ != 0) return;
    lines_.push_back(line);
    if (static_cast<int64_t>(lines_.size()) <= limit_) return;
    // The lines at even places of the sample are those at multiples of the doubled stride.
    for (size_t i = 1; 2 * i < lines_.size(); ++i) lines_[i] = std::move(lines_[2 * i]);
    lines_.resize((lines_.size() + 1) / 2);
    stride_ *= 2;
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  int64_t limit_, seen_ = 0, stride_ = 1;
  std::vector<std::string> lines_;
};

}  // namespace tactus
