// SPDX-License-Identifier: Apache-2.0
#include "app/cli_pages.h"

#include <algorithm>

#include "core/check.h"
#include "core/join.h"

namespace aifs::app {

namespace {

// Text that troff takes as it is.
std::string troff(const std::string& text) {
  std::string out;
  bool begins_line = true;
  for (const char letter : text) {
    if (begins_line && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
    begins_line = letter == '\n';
  }
  return out;
}

void add_options(const CommandPage& command, std::string& page) {
  for (const OptionPage& option : command.options) {
    std::vector<std::string> names;
    for (const std::string& name : option.names)
      names.push_back("\\fB" + troff(name) + "\\fR");
    page += concat(".TP\n", join(names),
                   option.value.empty() || option.is_positional
                       ? ""
                       : concat(" \\fI", troff(option.value), "\\fR"),
                   "\n", troff(option.text), "\n");
  }
}

// A word of a shell, whatever is in it.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char letter : text)
    out += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return out + "'";
}

// Words of a command that may come next: its options, and commands below it.
std::vector<std::string> words_of(const ProgramPages& pages, const CommandPage& command) {
  std::vector<std::string> words;
  const std::string prefix = command.name.empty() ? "" : command.name + " ";
  for (const CommandPage& other : pages.commands) {
    const bool is_below = !other.name.empty() && other.name.starts_with(prefix) &&
                          other.name.size() > prefix.size() &&
                          other.name.find(' ', prefix.size()) == std::string::npos;
    if (is_below) words.push_back(other.name.substr(prefix.size()));
  }
  for (const OptionPage& option : command.options)
    if (!option.is_positional) words.insert(words.end(), option.names.begin(), option.names.end());
  return words;
}

// "'data'|'data info'": the names of all commands, as patterns of a case.
std::string patterns(const ProgramPages& pages) {
  std::vector<std::string> names;
  for (const CommandPage& command : pages.commands)
    if (!command.name.empty()) names.push_back(quoted(command.name));
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : "|") + name;
  return text;
}

}  // namespace

std::string man_page(const ProgramPages& pages) {
  const CommandPage& program = pages.commands.front();
  std::string page = concat(".TH AIFS\\-TRAIN 1 \"\" \"", troff(pages.version), "\"\n",
                            ".SH NAME\naifs\\-train \\- ", troff(program.text), "\n",
                            ".SH SYNOPSIS\n.B aifs\\-train\n\\-\\-config FILE [OPTIONS]\n.br\n",
                            ".B aifs\\-train\nCOMMAND [OPTIONS]\n.SH OPTIONS\n");
  add_options(program, page);
  page += ".SH COMMANDS\n";
  for (size_t i = 1; i < pages.commands.size(); ++i) {
    const CommandPage& command = pages.commands[i];
    page += concat(".SS aifs\\-train ", troff(command.name), "\n", troff(command.text), "\n");
    add_options(command, page);
  }
  // Examples are lines of their own.
  page += concat(".SH NOTES\n.nf\n", troff(pages.footer), "\n.fi\n");
  page +=
      ".SH FILES\nThe keys of configurations are described by \\fBaifs\\-train "
      "\\-\\-print\\-reference\\fR.\n";
  return page;
}

std::string bash_completion(const ProgramPages& pages) {
  std::string script =
      concat(R"(# Completion of aifs-train for bash; aifs-train --print-completion bash made it.
_aifs_train() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${command:+$command }${COMP_WORDS[i]}" in
      )",
             patterns(pages), R"() command="${command:+$command }${COMP_WORDS[i]}" ;;
    esac
  done
  if [ "$before" = --set ]; then
    compopt -o nospace
    COMPREPLY=($(compgen -S = -W )",
             quoted(join(pages.keys, " ")), R"( -- "$word"))
    return
  fi
  case "$command" in
)");
  for (const CommandPage& command : pages.commands)
    script += concat("    ", quoted(command.name),
                     ") words=", quoted(join(words_of(pages, command), " ")), " ;;\n");
  return script + R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -o bashdefault -F _aifs_train aifs-train
)";
}

std::string zsh_completion(const ProgramPages& pages) {
  std::string script = concat(R"(#compdef aifs-train
# Completion of aifs-train for zsh; aifs-train --print-completion zsh made it.
_aifs_train() {
  local command= i
  local -a described
  for ((i = 2; i < CURRENT; ++i)); do
    case "${command:+$command }${words[i]}" in
      )",
                              patterns(pages), R"() command="${command:+$command }${words[i]}" ;;
    esac
  done
  if [[ ${words[CURRENT-1]} == --set ]]; then
    described=()",
                              join(pages.keys, " "), R"()
    compadd -S = -a described
    return
  fi
  case "$command" in
)");
  for (const CommandPage& command : pages.commands) {
    std::vector<std::string> lines;
    for (const std::string& word : words_of(pages, command)) {
      std::string text;
      for (const OptionPage& option : command.options)
        if (std::count(option.names.begin(), option.names.end(), word) > 0) text = option.text;
      for (const CommandPage& other : pages.commands)
        if (other.name == (command.name.empty() ? word : command.name + " " + word))
          text = other.text;
      std::string shown = word;
      lines.push_back(quoted(shown + ":" + text));
    }
    script += concat("    ", quoted(command.name), ") described=(", join(lines, " "), ") ;;\n");
  }
  return script + R"(  esac
  _describe 'option or command' described
  _files
}
if [[ $funcstack[1] == _aifs_train ]]; then
  _aifs_train "$@"
else
  compdef _aifs_train aifs-train
fi
)";
}

}  // namespace aifs::app
