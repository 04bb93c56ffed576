#include "core/process/signals.h"

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/error.h"

namespace tactus {
namespace {

// Process-wide because signals are.
std::atomic<int> g_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "the handler may only touch lock-free memory");

std::mutex g_mutex;
int g_guards = 0;
struct sigaction g_old_term, g_old_int;

extern "C" void tactus_on_stop(int signal) { g_signal.store(signal, std::memory_order_relaxed); }

void install(int signal, int flags, struct sigaction* old) {
  struct sigaction action = {};
  action.sa_handler = tactus_on_stop;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, old) != 0) throw Error(std::string("sigaction: ") + std::strerror(errno));
}

}  // namespace

bool stop_requested() noexcept { return stop_signal() != 0; }
int stop_signal() noexcept { return g_signal.load(std::memory_order_relaxed); }
int stop_exit_code() noexcept { return stop_signal() ? 128 + stop_signal() : 0; }

SignalGuard::SignalGuard() {
  std::lock_guard lock(g_mutex);
  if (g_guards++ > 0) return;
  g_signal = 0;
  install(SIGTERM, SA_RESTART, &g_old_term);
  install(SIGINT, static_cast<int>(SA_RESTART | SA_RESETHAND), &g_old_int);
}

SignalGuard::~SignalGuard() {
  std::lock_guard lock(g_mutex);
  if (--g_guards > 0) return;
  sigaction(SIGTERM, &g_old_term, nullptr);
  sigaction(SIGINT, &g_old_int, nullptr);
}

}  // namespace tactus
