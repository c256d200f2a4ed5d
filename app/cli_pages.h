// SPDX-License-Identifier: Apache-2.0
// The manual page and the completions of shells, made of what the command line knows.
#pragma once

#include <string>
#include <vector>

namespace aifs::app {

struct OptionPage {
  std::vector<std::string> names;  // "--resume"; of a positional one its name for people
  std::string value;               // what it takes, for people; "": a flag
  std::string text;
  bool is_positional = false;
};

struct CommandPage {
  std::string name;  // "", "watch", "data info"
  std::string text;
  std::vector<OptionPage> options;
};

// What a page is made of; the first command is the program itself.
struct ProgramPages {
  std::vector<CommandPage> commands;
  std::string footer;  // examples and exit codes
  std::string version;
  std::vector<std::string> keys;  // of configurations, for --set
};

// Of section 1, in troff's man macros.
std::string man_page(const ProgramPages& pages);
// Scripts to be sourced, or put where the shell looks for them.
std::string bash_completion(const ProgramPages& pages);
std::string zsh_completion(const ProgramPages& pages);

}  // namespace aifs::app
