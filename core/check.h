// SPDX-License-Identifier: Apache-2.0
// Errors that name the thing. Every failure of the program is one of the classes below; main()
// turns the class into a documented exit code and prints the message and the hint, no stack trace.
//
// Messages are built with concat(), not with a formatting library, so that this header can be
// included next to LibTorch and next to spdlog alike (they bundle different versions of fmt).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace aifs {

// Joins its arguments as an output stream would print them.
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  out.precision(10);
  (out << ... << args);
  return out.str();
}

// Base of all errors, and the class of what nobody expected: a bug, or an environment that fails
// (disk full, library call refused). `hint` says what the user can do; it may be empty.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string hint = {})
      : std::runtime_error(message), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// The configuration or the command line asks for something that cannot be. `path` is the JSON path
// of the offending value, e.g. "graph.hidden.refinement" ("" for the whole document).
class ConfigError : public Error {
 public:
  ConfigError(std::string path, const std::string& message, std::string hint = {})
      : Error(path.empty() ? message : concat("'", path, "': ", message), std::move(hint)),
        path_(std::move(path)) {}
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A file is missing, unreadable, damaged, or does not hold what the run needs. The message names
// the file, array, chunk, variable or date.
class DataError : public Error {
 public:
  using Error::Error;
};

// The numbers went wrong: NaN or infinity in loss, gradient, activation or statistics.
class NumericalError : public Error {
 public:
  using Error::Error;
};

// The run was asked to stop (signal, wall-clock limit) and saved what it needs to go on.
class InterruptedError : public Error {
 public:
  using Error::Error;
};

namespace internal {
[[noreturn]] void throw_check_failure(const char* expression, const char* file, int line,
                                      const std::string& message);
}  // namespace internal

// Checks a precondition or an invariant, in every build type. The message arguments are joined by
// concat() and evaluated only on failure:  AIFS_CHECK(n > 0, "n is ", n);
#define AIFS_CHECK(condition, ...)                                                          \
  do {                                                                                      \
    if (!(condition)) [[unlikely]] {                                                        \
      ::aifs::internal::throw_check_failure(#condition, __FILE__, __LINE__,                 \
                                            ::aifs::concat("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                       \
  } while (false)

// Number of single-character edits (insert, delete, replace, swap of neighbours) between a and b.
int edit_distance(std::string_view a, std::string_view b);

namespace internal {
std::string nearest_names(std::string_view wanted, const std::vector<std::string_view>& known,
                          int most);
}  // namespace internal

// The `most` names nearest to `wanted` by edit distance, best first, for "did you mean" hints:
// "nearest: 't_850', 't_500'", or "" if `known` is empty.
template <class Names>
std::string nearest_names(std::string_view wanted, const Names& known, int most = 3) {
  return internal::nearest_names(wanted, {known.begin(), known.end()}, most);
}

}  // namespace aifs
