// SPDX-License-Identifier: Apache-2.0
// What kernels have to do at least, for rooflines: told by whoever launches them, kept while
// somebody wants to know.
#pragma once

#include <string>
#include <vector>

namespace aifs {

// One call.
struct WorkOfCall {
  std::string kind;         // what the kernel is for: "LayerNorm backward"
  double bytes = 0.0;       // every tensor read or written once, tables that rows are gathered from
  double operations = 0.0;  // of products; an addition and a multiplication are two
};

// The calls of all threads from its construction on. One at a time in a process.
class WorkLog {
 public:
  WorkLog();
  ~WorkLog();
  WorkLog(const WorkLog&) = delete;
  WorkLog& operator=(const WorkLog&) = delete;

  static bool is_wanted();  // cheap
  static void add(WorkOfCall work);

  std::vector<WorkOfCall> calls() const;
};

}  // namespace aifs
