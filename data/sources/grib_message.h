// SPDX-License-Identifier: Apache-2.0
// Messages of GRIB files, through ECMWF's ecCodes where the program was built with it. Its keys
// ("shortName", "level", "values") are documented at confluence.ecmwf.int/display/ECC.
//
// The library is called by one thread at a time: every function here holds a lock of the process
// meanwhile, so all may be called by several threads, but one message by one thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace aifs::data {

// Throws ConfigError (`path`: the option that asks for GRIB) if this program has no ecCodes.
void require_grib(const std::string& path);
bool has_grib();

// Errors are Errors that name the key and the library's reason.
class GribMessage {
 public:
  // A message of edition 2 whose keys are to be set.
  static GribMessage new_edition2();
  // The next message of a file that is open, from its present position on; nothing at the end.
  // Throws DataError, naming `path` and the position, for what is no whole message.
  static std::optional<GribMessage> read_next(std::FILE* file, const std::string& path);

  GribMessage(GribMessage&&) noexcept;
  GribMessage& operator=(GribMessage&&) noexcept;
  ~GribMessage();

  GribMessage clone() const;

  void set(const std::string& key, int64_t value);
  void set(const std::string& key, double value);
  void set(const std::string& key, const std::string& value);  // numbers are understood, too
  void set(const std::string& key, std::span<const double> values);
  void set(const std::string& key, std::span<const int64_t> values);
  void set_missing(const std::string& key);
  // Returns the library's reason where it refuses, else "".
  std::string try_set(const std::string& key, const std::string& value);

  // Returns nothing for keys that the message has not.
  std::optional<int64_t> find_integer(const std::string& key) const;
  std::string text(const std::string& key) const;  // "" where there is none
  int64_t integer(const std::string& key) const;
  std::vector<double> reals(const std::string& key) const;

  // The message as it stands in a file; valid until a key is set.
  std::span<const std::byte> bytes() const;

 private:
  struct State;
  explicit GribMessage(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace aifs::data
