#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <thread>
#include <vector>

#include "core/process/log.h"
#include "core/process/signals.h"

namespace tactus {
namespace {

TEST(Signals, TermAndIntSetTheFlag) {
  for (const auto& [signal, code] : std::vector<std::pair<int, int>>{{SIGTERM, 143}, {SIGINT, 130}}) {
    SignalGuard guard;
    EXPECT_FALSE(stop_requested());
    EXPECT_EQ(stop_exit_code(), 0);
    raise(signal);
    EXPECT_TRUE(stop_requested());
    EXPECT_EQ(stop_signal(), signal);
    EXPECT_EQ(stop_exit_code(), code);
  }
}

TEST(Signals, GuardsNestAndRestore) {
  struct sigaction before, inside, after;
  sigaction(SIGTERM, nullptr, &before);
  {
    SignalGuard outer;
    raise(SIGTERM);
    {
      SignalGuard inner;
      EXPECT_TRUE(stop_requested());  // an inner guard does not forget the request
    }
    sigaction(SIGTERM, nullptr, &inside);
    EXPECT_NE(inside.sa_handler, before.sa_handler);
  }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  SignalGuard next;
  EXPECT_FALSE(stop_requested());
}

TEST(SignalsDeathTest, ASecondInterruptEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        SignalGuard guard;
        raise(SIGINT);
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

/// A stream whose whole text can be looked at.
class Capture {
 public:
  Capture() : file_(std::tmpfile()) {}
  ~Capture() { std::fclose(file_); }
  std::FILE* file() const { return file_; }
  std::string text() const {
    std::fflush(file_);
    std::string all(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    all.resize(std::fread(all.data(), 1, all.size(), file_));
    std::fseek(file_, 0, SEEK_END);
    return all;
  }

 private:
  std::FILE* file_;
};

TEST(Log, TerminalRewritesTheLiveLine) {
  Capture out;
  Log log(out.file(), true, 10, 12);
  log.live("step 1");
  log.live("step 2\nof very many");
  log.warn("odd");
  log.end_live();
  log.note("done");
  EXPECT_EQ(out.text(),
            "\rstep 1\x1b[K"
            "\rstep 2 of ve\x1b[K"
            "\r\x1b[Kwarning: odd\n\rstep 2 of ve\x1b[K"
            "\ndone\n");
}

TEST(Log, ElsewhereLiveLinesAreThinnedOutAndTheLastIsKept) {
  Capture out;
  Log log(out.file(), false, 3600, 12);
  log.live("step 1 of very many");
  log.live("step 2");
  log.live("step 3");
  log.warn("odd");
  log.end_live();
  log.live("step 4");
  log.end_live();
  EXPECT_EQ(out.text(), "step 1 of very many\nwarning: odd\nstep 3\nstep 4\n");
}

TEST(Log, WithoutAnIntervalEveryLiveLineIsPrinted) {
  Capture out;
  Log log(out.file(), false, 0);
  log.live("a");
  log.live("b");
  log.end_live();
  EXPECT_EQ(out.text(), "a\nb\n");
}

TEST(Log, LinesOfThreadsDoNotInterleave) {
  Capture out;
  Log log(out.file(), false);
  std::vector<std::thread> threads;
  for (char c : {'a', 'b', 'c', 'd'})
    threads.emplace_back([&log, c] {
      for (int i = 0; i < 100; ++i) log.warn(std::string(60, c));
    });
  for (std::thread& t : threads) t.join();
  const std::string text = out.text();
  const size_t width = std::string("warning: ").size() + 61;
  ASSERT_EQ(text.size(), 400 * width);
  for (size_t i = 0; i < text.size(); i += width)
    EXPECT_EQ(text.substr(i, width), "warning: " + std::string(60, text[i + 9]) + "\n");
}

TEST(Log, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(cut_to_width("halb zehn", 4), "halb");
  EXPECT_EQ(cut_to_width("für", 2), "fü");
  EXPECT_EQ(cut_to_width("日本語", 5), "日本");
  EXPECT_EQ(cut_to_width("e\xCC\x81x", 1), "e\xCC\x81");
  EXPECT_EQ(cut_to_width("\xFF\xC3", 1), "\xFF");
  EXPECT_EQ(cut_to_width("", 3), "");
  EXPECT_EQ(cut_to_width("abc", 0), "");
}

}  // namespace
}  // namespace tactus
