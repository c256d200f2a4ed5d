// SPDX-License-Identifier: Apache-2.0
#include "conformance/isolated.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/file_io.h"

namespace aifs::conformance {

namespace {

using Message = nlohmann::json;

// Data memory of this process, from the sixth number of /proc/self/statm.
size_t data_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  for (int i = 0; i < 6; ++i)
    statm >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

std::string result_of(const std::function<void(Comparison&)>& body, const IsolationLimits& limits) {
  Comparison comparison;
  Message result = Message::object();
  try {
    body(comparison);
  } catch (const NotSupported& reason) {
    result["not_supported"] = reason.what();
  } catch (const NotUnderstood& words) {
    result["not_understood"] = words.what();
  } catch (const std::bad_alloc&) {
    result["error"] = concat("needs more memory than the ", limits.extra_bytes >> 20,
                             " MiB that the case is given");
  } catch (const std::exception& error) {
    result["error"] = error.what();
  }
  result["checks"] = comparison.num_checks();
  result["remarks"] = comparison.remarks();
  result["failures"] = comparison.failures();
  return result.dump(-1, ' ', false, Message::error_handler_t::replace);
}

[[noreturn]] void child(int pipe, const std::function<void(Comparison&)>& body,
                        const IsolationLimits& limits) {
  const rlimit memory{data_bytes() + limits.extra_bytes, RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &memory);
  ::alarm(limits.seconds);
  const std::string result = result_of(body, limits);
  size_t done = 0;
  while (done < result.size()) {
    const ssize_t written = ::write(pipe, result.data() + done, result.size() - done);
    if (written < 0 && errno != EINTR) break;
    done += written > 0 ? static_cast<size_t>(written) : 0;
  }
  ::_exit(0);
}

std::string read_all(int pipe) {
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t got = ::read(pipe, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
}

}  // namespace

void run_isolated(Comparison& comparison, const std::function<void(Comparison&)>& body,
                  const IsolationLimits& limits) {
  int ends[2];
  AIFS_CHECK(::pipe(ends) == 0, system_error_text());
  const pid_t pid = ::fork();
  AIFS_CHECK(pid >= 0, "cannot start a process: ", system_error_text());
  if (pid == 0) {
    ::close(ends[0]);
    child(ends[1], body, limits);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    throw Error(signal == SIGALRM ? concat("did not end within ", limits.seconds, " s")
                                  : concat("crashed: ", ::strsignal(signal)));
  }
  const Message result = Message::parse(text, nullptr, false);
  if (!result.is_object()) throw Error(concat("ended without a result, status ", status));
  if (result.contains("not_supported"))
    throw NotSupported(result["not_supported"].get<std::string>());
  if (result.contains("not_understood"))
    throw NotUnderstood(result["not_understood"].get<std::string>());
  if (result.contains("error")) throw Error(result["error"].get<std::string>());
  for (const Message& remark : result["remarks"])
    comparison.remark(remark.get<std::string>());
  const auto failures = result["failures"].get<std::vector<std::string>>();
  for (const std::string& failure : failures)
    comparison.require(false, failure);
  for (auto i = static_cast<int>(failures.size()); i < result["checks"].get<int>(); ++i)
    comparison.require(true, "");
}

}  // namespace aifs::conformance
