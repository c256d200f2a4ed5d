// SPDX-License-Identifier: Apache-2.0
#include "app/run/signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "app/run/exit_codes.h"

namespace aifs::app {

namespace {

volatile std::sig_atomic_t g_stop_requested = 0;
volatile std::sig_atomic_t g_defers_stops = 0;

// Only calls that are allowed in a signal handler.
extern "C" void on_signal(int signal) {
  if (!g_defers_stops) {
    constexpr std::string_view kText =
        "stopped before the first step; start again, with --resume if there are checkpoints\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
    ::_exit(kInterrupted);
  }
  if (g_stop_requested && signal == SIGINT) ::_exit(128 + signal);
  g_stop_requested = 1;
}

}  // namespace

void install_signal_handlers() {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU}) {
    if (std::signal(signal, on_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  survive_failed_writes();
}

void survive_failed_writes() {
  for (const int signal : {SIGPIPE, SIGXFSZ})
    std::signal(signal, SIG_IGN);
}

void defer_stops() {
  g_defers_stops = 1;
}

bool stop_requested() {
  return g_stop_requested != 0;
}

}  // namespace aifs::app
