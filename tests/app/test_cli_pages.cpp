// SPDX-License-Identifier: Apache-2.0
// The manual page and the completions, as the program prints them and as shells use them.
#include "app/cli_pages.h"

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_command;

namespace {

app::ProgramPages some_pages() {
  return {.commands = {{"", "Trains.", {{{"--set"}, "KEY", "override a value", false}}},
                       {"data", "looks at data", {}},
                       {"data info", "what's in it", {{{"--json"}, "", "as JSON", false}}}},
          .footer = "Examples\n  .a-b \\ c",
          .version = "1",
          .keys = {"run.dir", "run.seed"}};
}

std::string printed(const std::string& what) {
  const auto result =
      run_command(concat("'", test::program("aifs-train").string(), "' --print-", what));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

// What bash offers for the last of these words.
std::string offered(const fs::path& script, const std::string& words) {
  return run_command(concat("bash -c 'source \"", script.string(),
                            "\"; compopt() { :; }; COMP_WORDS=(", words,
                            "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _aifs_train; ",
                            "printf \"%s \" \"${COMPREPLY[@]}\"'"))
      .out;
}

bool has(const char* program) {
  return run_command(concat("command -v ", program)).exit_code == 0;
}

}  // namespace

TEST_CASE("the manual page has every command and option, and nothing that troff takes for its own",
          "[cli_pages]") {
  const std::string page = app::man_page(some_pages());
  CHECK_THAT(page,
             ContainsSubstring(".SS aifs\\-train data info\n") &&
                 ContainsSubstring(".TP\n\\fB\\-\\-set\\fR \\fIKEY\\fR\noverride a value\n") &&
                 ContainsSubstring("  .a\\-b \\e c"));
  const std::string own = printed("man");
  for (const char* text : {"\\-\\-resume", "\\fB\\-\\-set\\fR", ".SS aifs\\-train watch",
                           ".SS aifs\\-train data info", "Exit codes"})
    CHECK_THAT(own, ContainsSubstring(text));
  if (!has("groff")) return;
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "page.1", own);
  const auto shown =
      run_command(concat("groff -man -Tascii -ww '", (folder.path() / "page.1").string(), "'"));
  CHECK(shown.err.empty());
}

TEST_CASE("bash completes commands, options and keys", "[cli_pages]") {
  const test::TemporaryFolder folder;
  const fs::path script = folder.path() / "completion";
  write_file_atomic(script, printed("completion bash"));
  CHECK(offered(script, "aifs-train wat") == "watch ");
  CHECK(offered(script, "aifs-train data in") == "info ");
  CHECK(offered(script, "aifs-train watch --on") == "--once ");
  CHECK(offered(script, "aifs-train --print-m") == "--print-man ");
  CHECK(offered(script, "aifs-train --config x --set checkpoint.keep_every_h") ==
        "checkpoint.keep_every_hours= ");
  CHECK(offered(script, "aifs-train explain-hang --no-such").find("--") == std::string::npos);
}

TEST_CASE("the completion of zsh is one that zsh reads", "[cli_pages]") {
  const std::string script = printed("completion zsh");
  CHECK_THAT(script, ContainsSubstring("#compdef aifs-train\n") &&
                         ContainsSubstring("'watch:show how runs go on"));
  CHECK_THAT(app::zsh_completion(some_pages()), ContainsSubstring("'info:what'\\''s in it'"));
  if (!has("zsh")) return;
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "_aifs-train", script);
  const auto read = run_command(concat("zsh -n '", (folder.path() / "_aifs-train").string(), "'"));
  INFO(read.err);
  CHECK(read.exit_code == 0);
}

TEST_CASE("a shell that is not known is a mistake", "[cli_pages]") {
  const auto result =
      run_command(concat("'", test::program("aifs-train").string(), "' --print-completion csh"));
  CHECK(result.exit_code == 2);
}
