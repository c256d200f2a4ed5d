// SPDX-License-Identifier: Apache-2.0
// What the program's exit code means. Documented in docs/usage.md; scripts rely on it.
#pragma once

namespace aifs::app {

enum ExitCode : int {
  kSuccess = 0,
  kInternal = 1,     // a bug, or an environment that fails (disk full, library refuses)
  kUsage = 2,        // command line or configuration
  kData = 3,         // dataset, graph file or checkpoint missing, damaged or unsuitable
  kNumerical = 4,    // NaN or infinity
  kInterrupted = 5,  // stopped by a signal or time limit after a checkpoint: resume with --resume
  kPeerLost = 6,     // waited too long for another rank (parallel.timeout_s)
  kNotHonoured = 7,  // import-config --strict: a key that changes what is trained was left out
  kDiffers = 8,      // graph compare: the graphs are not equal
};

}  // namespace aifs::app
