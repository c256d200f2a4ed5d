// SPDX-License-Identifier: Apache-2.0
// Requests to stop: SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP and SIGXCPU, which schedulers and
// terminals send. What the starter of the process has set to be ignored (nohup) stays ignored.
#pragma once

namespace aifs::app {

// From now on a request ends the process at once with exit code kInterrupted: while a run starts,
// nothing is lost.
void install_signal_handlers();

// From now on a closed pipe, or a file at its size limit, is an error of that write.
void survive_failed_writes();

// From now on a request is only noted, for a loop that asks stop_requested() and writes a
// checkpoint first. A second SIGINT ends the process at once.
void defer_stops();

bool stop_requested();

}  // namespace aifs::app
