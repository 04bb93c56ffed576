// A polite request to stop: SIGTERM (a cluster's warning) and SIGINT (Ctrl-C) set a flag that loops poll between steps,
// so that a run can save a checkpoint first.
#pragma once

namespace tactus {

/// True once SIGTERM or SIGINT arrived while a SignalGuard lived.
bool stop_requested() noexcept;
/// The signal that asked to stop, 0 if none. The process should then exit with stop_exit_code().
int stop_signal() noexcept;
/// 128 + the signal: 143 after SIGTERM, 130 after SIGINT; 0 if none.
int stop_exit_code() noexcept;

/// Catches both signals while it lives, then restores what was there. A second SIGINT ends the process at once. System
/// calls that a signal interrupts are restarted, so that file I/O never sees it. Guards may nest.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
};

}  // namespace tactus
