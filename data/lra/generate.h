// Generators of synthetic sets: items made by many threads, taken in order.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/process/log.h"
#include "core/process/signals.h"

namespace tactus {

/// Calls make(0), make(1), ... on `threads` threads (0: all cores) and take(i, item) on this one, in order, until take
/// says false; `items_per_thread` are in flight for each thread. make must be a pure function of i, so that what is
/// taken does not depend on the threads; of several exceptions the one of the smallest i that was reached is thrown.
/// Throws Error after SIGTERM or SIGINT.
template <class Make, class Take>
void generate_in_order(int64_t threads, int64_t items_per_thread, Make make, Take take) {
  using Made = decltype(make(int64_t{0}));
  const int workers = threads > 0 ? static_cast<int>(threads) : omp_get_max_threads();
  const int64_t count = items_per_thread * workers;
  const int64_t share = std::max<int64_t>(1, items_per_thread / 64);
  const SignalGuard guard;
  for (int64_t begin = 0;; begin += count) {
    std::vector<Made> made(static_cast<size_t>(count));
    std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
#pragma omp parallel for num_threads(workers) schedule(dynamic, share)
    for (int64_t i = 0; i < count; ++i) {
      try {
        made[i] = make(begin + i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      if (errors[i]) std::rethrow_exception(errors[i]);
      if (!take(begin + i, std::move(made[i]))) return;
    }
    if (stop_requested()) throw Error("stopped by a signal; nothing was written");
  }
}

/// "generate WHAT: DONE/TOTAL" on the log.
inline void generation_progress(const std::string& what, int64_t done, int64_t total) {
  stderr_log().live("generate " + what + ": " + std::to_string(done) + "/" + std::to_string(total));
}

}  // namespace tactus
