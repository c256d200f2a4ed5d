// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <mutex>

namespace aifs::log {

namespace {

struct Logger {
  std::mutex mutex;
  std::atomic<int64_t> failures{0};
  int rank = 0;
  int world_size = 1;
  std::shared_ptr<spdlog::logger> terminal;
  std::shared_ptr<spdlog::logger> file;

  Logger() {
    terminal = std::make_shared<spdlog::logger>(
        "aifs", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    terminal->set_pattern("%^%L%$ %H:%M:%S %v");
    terminal->set_level(spdlog::level::info);
  }
};

struct Speaker {
  int rank = 0, world_size = 0;  // size 0: the process speaks
};
thread_local Speaker thread_speaker;

Logger& logger() {
  static Logger instance;  // no resource other than the terminal and one file
  return instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void count_failure(const std::string& reason) {
  if (logger().failures.fetch_add(1) == 0) {
    std::fprintf(stderr, "W logging to the log file fails (%s); training goes on without it\n",
                 reason.c_str());
  }
}

}  // namespace

void set_rank(int rank, int world_size) {
  const std::lock_guard lock(logger().mutex);
  logger().rank = rank;
  logger().world_size = world_size;
}

void set_thread_rank(int rank, int world_size) {
  thread_speaker = {rank, world_size};
}

void set_level(Level level) {
  const std::lock_guard lock(logger().mutex);
  logger().terminal->set_level(to_spdlog(level));
}

void add_file(const std::string& path) {
  const std::lock_guard lock(logger().mutex);
  try {
    auto file = std::make_shared<spdlog::logger>(
        "aifs-file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, false));
    file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
    file->set_level(spdlog::level::debug);
    file->flush_on(spdlog::level::info);
    file->set_error_handler(
        [path](const std::string&) { count_failure(concat("cannot write to '", path, "'")); });
    logger().file = std::move(file);
  } catch (const std::exception&) {
    count_failure(concat("cannot open '", path, "'"));
  }
}

void close_file() {
  const std::lock_guard lock(logger().mutex);
  if (logger().file) logger().file->flush();
  logger().file.reset();
}

int64_t num_failures() {
  return logger().failures.load();
}

void write(Level level, std::string_view text) {
  Logger& self = logger();
  const std::lock_guard lock(self.mutex);
  const Speaker speaker =
      thread_speaker.world_size > 0 ? thread_speaker : Speaker{self.rank, self.world_size};
  if (speaker.rank != 0 && level < Level::kWarning) return;
  std::string line;
  if (speaker.world_size > 1) line = concat("[", speaker.rank, "/", speaker.world_size, "] ");
  line += text;
  self.terminal->log(to_spdlog(level), line);
  if (self.file) self.file->log(to_spdlog(level), line);
}

}  // namespace aifs::log
