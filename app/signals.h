// SPDX-License-Identifier: Apache-2.0
// SIGTERM, SIGINT and SIGUSR1 (what Slurm sends before a time limit) ask the run to write a
// checkpoint after the current step and leave; a second SIGINT ends it at once.
#pragma once

namespace aifs::app {

// Installs the handlers for the life of the process.
void install_signal_handlers();

// Whether a signal has asked the run to stop.
bool stop_requested();

}  // namespace aifs::app
