// SPDX-License-Identifier: Apache-2.0
#include "app/signals.h"

#include <csignal>
#include <cstdlib>

namespace aifs::app {

namespace {

volatile std::sig_atomic_t g_stop_requested = 0;

extern "C" void on_signal(int signal) {
  if (g_stop_requested && signal == SIGINT) std::_Exit(128 + signal);
  g_stop_requested = 1;
}

}  // namespace

void install_signal_handlers() {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1})
    std::signal(signal, on_signal);
  // A closed terminal or a file at its size limit is an error of that write, not the end of a run.
  for (const int signal : {SIGPIPE, SIGXFSZ})
    std::signal(signal, SIG_IGN);
}

bool stop_requested() {
  return g_stop_requested != 0;
}

}  // namespace aifs::app
