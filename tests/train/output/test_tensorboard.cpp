// SPDX-License-Identifier: Apache-2.0
// Event files are read back by a parser that shares nothing with the writer: checksums bit by bit
// (checked against published vectors), protobuf by its wire format alone.
#include "train/output/tensorboard.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <map>

#include "core/log.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;
using train::TensorBoardWriter;

namespace {

uint32_t crc32c_bit_by_bit(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool differs = ((crc ^ (static_cast<uint8_t>(c) >> bit)) & 1u) != 0;
      crc = (crc >> 1) ^ (differs ? 0x82F63B78u : 0u);
    }
  }
  return crc ^ 0xFFFFFFFFu;
}

template <class T>
T take_fixed(const std::string& bytes, size_t& at) {
  T value{};
  REQUIRE(at + sizeof(T) <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return value;
}

uint64_t take_varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take_fixed<uint8_t>(bytes, at);
    value |= static_cast<uint64_t>(byte & 0x7Fu) << shift;
    if (byte < 0x80) return value;
  }
}

std::string take_bytes(const std::string& bytes, size_t& at, uint64_t count) {
  REQUIRE(count <= bytes.size() - at);
  at += count;
  return bytes.substr(at - count, count);
}

// The content of each field of a message, by number; every field here occurs once.
std::map<uint64_t, std::string> parse_message(const std::string& bytes) {
  std::map<uint64_t, std::string> fields;
  for (size_t at = 0; at < bytes.size();) {
    const uint64_t key = take_varint(bytes, at), wire_type = key & 7u;
    const size_t start = at;
    if (wire_type == 0) take_varint(bytes, at);
    if (wire_type == 1) at += 8;
    if (wire_type == 5) at += 4;
    std::string content = bytes.substr(start, at - start);
    if (wire_type == 2) content = take_bytes(bytes, at, take_varint(bytes, at));
    REQUIRE(fields.emplace(key >> 3, content).second);
  }
  return fields;
}

template <class T>
T number(const std::string& content) {
  REQUIRE(content.size() == sizeof(T));
  size_t at = 0;
  return take_fixed<T>(content, at);
}

struct Event {
  double wall_time_s = 0.0;
  int64_t step = 0;
  std::string version, tag;
  float value = 0.0f;
  uint64_t session_status = 0;
};

Event parse_event(const std::string& message) {
  Event event;
  std::map<uint64_t, std::string> fields = parse_message(message);
  event.wall_time_s = number<double>(fields.at(1));
  event.version = fields[3];
  size_t at = 0;
  if (fields.count(2) != 0) event.step = static_cast<int64_t>(take_varint(fields.at(2), at));
  if (fields.count(7) != 0) {
    at = 0;
    event.session_status = take_varint(parse_message(fields.at(7)).at(1), at);
  }
  if (fields.count(5) == 0) return event;
  std::map<uint64_t, std::string> value = parse_message(parse_message(fields.at(5)).at(1));
  event.tag = value.at(1);
  event.value = number<float>(value.at(2));
  return event;
}

std::vector<Event> parse_file(const fs::path& path) {
  const std::string bytes = read_file(path);
  const auto masked = [](const std::string& text) {
    const uint32_t crc = crc32c_bit_by_bit(text);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
  };
  std::vector<Event> events;
  for (size_t at = 0; at < bytes.size();) {
    const std::string length_bytes = take_bytes(bytes, at, 8);
    REQUIRE(take_fixed<uint32_t>(bytes, at) == masked(length_bytes));
    const std::string message = take_bytes(bytes, at, number<uint64_t>(length_bytes));
    REQUIRE(take_fixed<uint32_t>(bytes, at) == masked(message));
    events.push_back(parse_event(message));
  }
  return events;
}

}  // namespace

TEST_CASE("the test's checksum gives the published values", "[tensorboard]") {
  REQUIRE(crc32c_bit_by_bit("123456789") == 0xE3069283u);
  REQUIRE(crc32c_bit_by_bit(std::string(32, '\0')) == 0x8A9136AAu);  // RFC 3720, B.4
  REQUIRE(crc32c_bit_by_bit(std::string(32, '\xFF')) == 0x62A8AB43u);
}

TEST_CASE("a new file is named after time, host and process and starts with the version",
          "[tensorboard]") {
  const test::TemporaryFolder folder;
  const auto before = static_cast<int64_t>(std::time(nullptr));
  const TensorBoardWriter writer(folder.path() / "new" / "folder");
  REQUIRE(writer.path().parent_path() == folder.path() / "new" / "folder");
  const std::string name = writer.path().filename().string(), prefix = "events.out.tfevents.";
  REQUIRE(name.substr(0, prefix.size()) == prefix);
  REQUIRE(std::stoll(name.substr(prefix.size())) - before <= 5);
  REQUIRE(name.substr(name.rfind('.') + 1) == std::to_string(::getpid()));

  const std::vector<Event> events = parse_file(writer.path());
  REQUIRE(events.size() == 1);
  REQUIRE(events[0].version == "brain.Event:2");
  REQUIRE(std::abs(events[0].wall_time_s - static_cast<double>(before)) < 5.0);
}

TEST_CASE("scalars come back as they were written, after each flush", "[tensorboard]") {
  const test::TemporaryFolder folder;
  const std::vector<Event> expected{
      {0, 0, "", "loss/train", 0.25f}, {0, 1, "", "loss/train", -1e-30f},
      {0, 127, "", "lr", 3.5e-4f},     {0, 128, "", "", 0.0f},
      {0, -1, "", "ψ", 1.0f},          {0, int64_t{1} << 40, "", std::string(300, 'x'), INFINITY}};
  TensorBoardWriter writer(folder.path());
  for (const Event& event : expected) {
    writer.add_scalar(event.tag, static_cast<double>(event.value), event.step);
    REQUIRE(parse_file(writer.path()).size() == static_cast<size_t>(&event - expected.data()) + 1);
    writer.flush();
  }
  const std::vector<Event> events = parse_file(writer.path());
  REQUIRE(events.size() == expected.size() + 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(events[i + 1].step == expected[i].step);
    REQUIRE(events[i + 1].tag == expected[i].tag);
    REQUIRE(events[i + 1].value == expected[i].value);
    REQUIRE(events[i + 1].wall_time_s >= events[i].wall_time_s);
  }
  writer.add_scalar("loss/train", std::nan(""), 9);
  writer.flush();
  REQUIRE(std::isnan(parse_file(writer.path()).back().value));
  REQUIRE(writer.num_failures() == 0);
}

TEST_CASE("a resumed run tells readers to forget what came after its checkpoint", "[tensorboard]") {
  const test::TemporaryFolder folder;
  TensorBoardWriter writer(folder.path(), 35);
  writer.add_scalar("loss", 0.5, 36);
  writer.flush();
  const std::vector<Event> events = parse_file(writer.path());
  REQUIRE(events.size() == 3);
  REQUIRE(events[0].version == "brain.Event:2");
  REQUIRE(events[1].session_status == 1);  // START: events of its step and later ones are dropped
  REQUIRE(events[1].step == 36);
  REQUIRE(events[2].step == 36);
}

TEST_CASE("what was not flushed is written at the end", "[tensorboard]") {
  const test::TemporaryFolder folder;
  fs::path path;
  {
    TensorBoardWriter writer(folder.path());
    path = writer.path();
    writer.add_scalar("a", 1.0, 1);
    writer.add_scalar("b", 2.0, 1);
  }
  REQUIRE(parse_file(path).size() == 3);
}

TEST_CASE("a removed folder is counted, reported once, and tried again", "[tensorboard]") {
  const test::TemporaryFolder folder;
  const fs::path log_file = folder.path() / "log.txt", events_folder = folder.path() / "events";
  TensorBoardWriter writer(events_folder);
  log::add_file(log_file.string());
  fs::remove_all(events_folder);
  for (int64_t step = 1; step <= 3; ++step) {
    writer.add_scalar("loss", 1.0, step);
    writer.flush();
    REQUIRE(writer.num_failures() == step);
  }
  fs::create_directory(events_folder);
  writer.add_scalar("loss", 0.5, 4);
  writer.flush();
  log::close_file();
  REQUIRE(writer.num_failures() == 3);

  const std::vector<Event> events = parse_file(writer.path());
  REQUIRE(events.size() == 2);
  REQUIRE(events[0].version == "brain.Event:2");
  REQUIRE(events[1].step == 4);
  const std::string log_text = read_file(log_file);
  REQUIRE_THAT(log_text, ContainsSubstring("No such file or directory"));
  REQUIRE(std::count(log_text.begin(), log_text.end(), '\n') == 1);
}

TEST_CASE("a record that fits only in part leaves the file whole", "[tensorboard]") {
  const test::TemporaryFolder folder;
  TensorBoardWriter writer(folder.path());
  writer.add_scalar("loss", 1.0, 1);
  writer.flush();
  {
    const test::FileSizeLimit limit(fs::file_size(writer.path()) + 10);
    writer.add_scalar("loss", 2.0, 2);
    writer.flush();
  }
  REQUIRE(writer.num_failures() == 1);
  REQUIRE(parse_file(writer.path()).size() == 2);
  writer.add_scalar("loss", 3.0, 3);
  writer.flush();
  const std::vector<Event> events = parse_file(writer.path());
  REQUIRE(events.size() == 3);
  REQUIRE(events.back().step == 3);
}

TEST_CASE("a folder that cannot be made is an error at once", "[tensorboard]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "file", "in the way");
  REQUIRE_THROWS_AS(TensorBoardWriter(folder.path() / "file" / "events"), Error);
}
