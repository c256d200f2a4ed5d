// SPDX-License-Identifier: Apache-2.0
// Runs as text for a terminal: a block of lines each, or a line each where many share a screen.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/watch_tools/run_watch.h"

namespace aifs::app {

struct FrameSize {
  int columns = 100;
  int rows = 0;  // 0: as many as needed
  bool utf8 = true;
};

// `width` characters, each the mean of as many values as come to it: low is small, on a logarithmic
// scale if all are positive. "x" where none of them is finite; shorter if there are fewer values.
std::string sparkline(std::span<const double> values, int width, bool utf8);

// The first `columns` characters of a text, with "..." in place of what is cut off. Bytes that are
// no printable characters (a log may hold anything) become "?".
std::string cut_to(const std::string& text, int columns);

// A block for each run; a line for each if blocks need more than `rows`, and the last line says how
// many are left out if these do, too. No line is longer than `columns`.
std::vector<std::string> frame_of(const std::vector<const RunView*>& runs, const FrameSize& size);

}  // namespace aifs::app
