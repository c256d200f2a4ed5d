// SPDX-License-Identifier: Apache-2.0
// Logging: four levels to the terminal (stderr) and, once a run folder exists, to a file.
// Rank 0 prints everything; other ranks print warnings and errors, each line carrying the rank.
// Logging never throws: a full disk or a removed folder is reported once on stderr and training
// goes on. Thread-safe. spdlog stays inside log.cpp (it must not meet LibTorch's fmt).
#pragma once

#include <string>
#include <string_view>

#include "core/check.h"

namespace aifs::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// Who speaks: with world_size > 1 every line is prefixed by "[rank/world]".
void set_rank(int rank, int world_size);

// From now on this thread speaks as this rank, in a process that plays several.
void set_thread_rank(int rank, int world_size);

// The least important level that is printed.
void set_level(Level level);

// Also writes plain lines (with time stamps) to this file, appending. A file that cannot be opened
// is reported as a warning.
void add_file(const std::string& path);

// Stops writing to the file of add_file() and flushes it.
void close_file();

// Number of log lines that could not be written so far.
int64_t num_failures();

void write(Level level, std::string_view text);

template <class... Args>
void debug(const Args&... args) {
  write(Level::kDebug, concat(args...));
}
template <class... Args>
void info(const Args&... args) {
  write(Level::kInfo, concat(args...));
}
template <class... Args>
void warning(const Args&... args) {
  write(Level::kWarning, concat(args...));
}
template <class... Args>
void error(const Args&... args) {
  write(Level::kError, concat(args...));
}

}  // namespace aifs::log
