// What every failing command must do: the right exit code and one line that says why.
#pragma once

#include "tests/train/run_test_util.h"

namespace tactus {

class CliTest : public RunTest {
 protected:
  void expect_error(const std::vector<std::string>& arguments, int code, const std::vector<std::string>& parts) const {
    expect_failed(tactus(arguments), code, parts);
  }
  static void expect_failed(const Outcome& o, int code, const std::vector<std::string>& parts) {
    EXPECT_EQ(o.code, code) << o.err;
    EXPECT_FALSE(o.killed);
    ASSERT_EQ(o.errors().size(), 1u) << o.err;
    EXPECT_EQ(o.err.substr(o.err.find("tactus: ")), o.errors().front() + "\n") << "the error is the last line, and one";
    for (const std::string& part : parts) EXPECT_TRUE(contains(o.errors().front(), part)) << part << ": " << o.err;
  }
  void trained(const std::string& run) const {
    const Outcome o = tactus({"train", config("max_updates: 6, save_every: 2, log_every: 2"), "--run", path(run)});
    ASSERT_EQ(o.code, 0) << o.err;
  }
  /// A copy of the first `share` of a file.
  std::string cut(const std::string& file, double share, const std::string& name) const {
    const std::string bytes = file_text(file);
    return write(name, bytes.substr(0, static_cast<size_t>(share * static_cast<double>(bytes.size()))));
  }
};

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace tactus
