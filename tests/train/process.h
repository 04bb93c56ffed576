// The program as a process of its own: run to its end, or killed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tactus {

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;        ///< exit code, or 128 + signal as a shell says
  bool killed = false;  ///< ended by a signal
  std::string out, err;

  /// Lines of stderr that report an error.
  std::vector<std::string> errors() const {
    std::istringstream lines(err);
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("tactus: ", 0) == 0) found.push_back(line);
    }
    return found;
  }
};

class Process {
 public:
  /// Starts `tactus ARGUMENTS...` in `folder`. `file_limit`: largest file it may write, 0: any.
  Process(const std::string& folder, const std::vector<std::string>& arguments, int64_t file_limit = 0)
      : out_(folder + "/stdout.txt"), err_(folder + "/stderr.txt") {
    const std::string binary = std::string(TACTUS_BINARY_DIR) + "/tactus";
    std::vector<char*> argv = {const_cast<char*>(binary.c_str())};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    redirect(out_, STDOUT_FILENO);
    redirect(err_, STDERR_FILENO);
    if (file_limit > 0) {
      signal(SIGXFSZ, SIG_IGN);  // the failing write is what is tested
      const rlimit limit{static_cast<rlim_t>(file_limit), static_cast<rlim_t>(file_limit)};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (chdir(folder.c_str()) == 0) execv(binary.c_str(), argv.data());
    _exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (!reaped_) send(SIGKILL), wait();
  }

  void send(int signal_number) {
    if (!reaped_) ::kill(pid_, signal_number);
  }
  bool running() {
    if (!reaped_ && waitpid(pid_, &status_, WNOHANG) == pid_) reaped_ = true;
    return !reaped_;
  }
  /// Polls until `condition` holds; false when the process ended before, or after a minute.
  bool wait_for(const std::function<bool()>& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (running() && std::chrono::steady_clock::now() < limit) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return false;
  }
  /// What it has said so far.
  std::string err() const { return file_text(err_); }
  Outcome wait() {
    if (!reaped_) waitpid(pid_, &status_, 0);
    reaped_ = true;
    Outcome o;
    o.killed = WIFSIGNALED(status_);
    o.code = o.killed ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
    o.out = file_text(out_);
    o.err = file_text(err_);
    return o;
  }

 private:
  static void redirect(const std::string& path, int to) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || dup2(fd, to) < 0) _exit(126);
    close(fd);
  }
  std::string out_, err_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool reaped_ = false;
};

}  // namespace tactus
