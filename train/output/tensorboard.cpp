// SPDX-License-Identifier: Apache-2.0
#include "train/output/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <string_view>

#include "core/check.h"

namespace aifs::train {

namespace {

// CRC-32C (Castagnoli), reflected polynomial 0x82F63B78, one byte at a time.
constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = ~0u;
  for (const char c : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFFu];
  return ~crc;
}

// Records store sums in this form, so that sums of data that hold sums stay strong.
uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u;
}

// Little-endian.
template <class UInt>
void put_fixed(std::string& out, UInt value) {
  for (size_t i = 0; i < sizeof(UInt); ++i)
    out += static_cast<char>((value >> (8 * i)) & 0xFFu);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80u; value >>= 7)
    out += static_cast<char>((value & 0x7Fu) | 0x80u);
  out += static_cast<char>(value);
}

// Fields of a protobuf message: key = number · 8 + wire type.
void put_varint_field(std::string& out, uint64_t number, uint64_t value) {
  put_varint(out, number << 3);
  put_varint(out, value);
}

void put_double_field(std::string& out, uint64_t number, double value) {
  put_varint(out, (number << 3) | 1);
  put_fixed(out, std::bit_cast<uint64_t>(value));
}

void put_float_field(std::string& out, uint64_t number, float value) {
  put_varint(out, (number << 3) | 5);
  put_fixed(out, std::bit_cast<uint32_t>(value));
}

void put_bytes_field(std::string& out, uint64_t number, std::string_view bytes) {
  put_varint(out, (number << 3) | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string record(const std::string& message) {
  std::string out;
  put_fixed(out, static_cast<uint64_t>(message.size()));
  put_fixed(out, masked_crc32c(out));
  out += message;
  put_fixed(out, masked_crc32c(message));
  return out;
}

double wall_time_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Returns what every event file starts with.
std::string version_record() {
  std::string event;
  put_double_field(event, 1, wall_time_s());
  put_bytes_field(event, 3, "brain.Event:2");
  return record(event);
}

// Says that a session starts at this step: readers forget events of this and later steps that an
// earlier file of the folder holds.
std::string start_record(int64_t step) {
  constexpr uint64_t kStart = 1;  // SessionLog.SessionStatus.START
  std::string session, event;
  put_varint_field(session, 1, kStart);
  put_double_field(event, 1, wall_time_s());
  put_varint_field(event, 2, static_cast<uint64_t>(step));
  put_bytes_field(event, 7, session);
  return record(event);
}

std::string scalar_record(const std::string& tag, float scalar, int64_t step) {
  std::string value, summary, event;
  put_bytes_field(value, 1, tag);
  put_float_field(value, 2, scalar);
  put_bytes_field(summary, 1, value);
  put_double_field(event, 1, wall_time_s());
  put_varint_field(event, 2, static_cast<uint64_t>(step));
  put_bytes_field(event, 5, summary);
  return record(event);
}

std::string file_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown"};
  return concat("events.out.tfevents.", static_cast<int64_t>(wall_time_s()), ".", host.data(), ".",
                ::getpid());
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, int64_t resume_step)
    : file_(folder / file_name()) {
  make_directories(folder);
  const std::string reason =
      append_whole(path(), resume_step >= 0 ? start_record(resume_step + 1) : "", version_record());
  if (!reason.empty()) throw Error(concat("cannot write '", path().string(), "': ", reason));
}

TensorBoardWriter::~TensorBoardWriter() {
  flush();
}

void TensorBoardWriter::add_scalar(const std::string& tag, double value, int64_t step) {
  pending_ += scalar_record(tag, static_cast<float>(value), step);
}

void TensorBoardWriter::flush() {
  if (pending_.empty()) return;
  file_.append(pending_, version_record());
  pending_.clear();
}

}  // namespace aifs::train
