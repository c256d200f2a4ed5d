// SPDX-License-Identifier: Apache-2.0
#include "data/sources/grib_message.h"

#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/check.h"

#ifdef AIFS_HAVE_GRIB
#include <eccodes.h>
#endif

namespace aifs::data {

void require_grib(const std::string& path) {
  if (has_grib()) return;
  throw ConfigError(path, "this program was built without ecCodes, which reads and writes GRIB",
                    "apt-get install libeccodes-dev, or run tools/setup, and build it again");
}

#ifdef AIFS_HAVE_GRIB

namespace {

std::mutex& grib_mutex() {
  static std::mutex mutex;
  return mutex;
}

// What the library has said since the last call began: it prints it otherwise.
std::string& last_words() {
  static std::string words;
  return words;
}

// Holds the library for one call.
class Turn {
 public:
  Turn() : lock_(grib_mutex()) {
    static const bool once = [] {
      codes_context_set_logging_proc(nullptr,
                                     [](const codes_context*, int level, const char* text) {
                                       if (level == GRIB_LOG_ERROR || level == GRIB_LOG_FATAL)
                                         last_words() = text;
                                     });
      return true;
    }();
    static_cast<void>(once);
    last_words().clear();
  }
  // "Value too small (pl: ...)".
  std::string reason(int status) const {
    const std::string text = codes_get_error_message(status);
    return last_words().empty() ? text : concat(text, " (", last_words(), ")");
  }

 private:
  std::lock_guard<std::mutex> lock_;
};

}  // namespace

bool has_grib() {
  return true;
}

struct GribMessage::State {
  codes_handle* handle = nullptr;
  ~State() {
    const Turn turn;
    if (handle) codes_handle_delete(handle);
  }
  // Throws Error unless a call on a key succeeded.
  static void check(const Turn& turn, int status, const std::string& key) {
    if (status == CODES_SUCCESS) return;
    throw Error(concat("GRIB key '", key, "': ", turn.reason(status)));
  }
};

GribMessage::GribMessage(std::unique_ptr<State> state) : state_(std::move(state)) {}
GribMessage::GribMessage(GribMessage&&) noexcept = default;
GribMessage& GribMessage::operator=(GribMessage&&) noexcept = default;
GribMessage::~GribMessage() = default;

GribMessage GribMessage::new_edition2() {
  auto state = std::make_unique<State>();
  const Turn turn;
  state->handle = codes_grib_handle_new_from_samples(nullptr, "GRIB2");
  if (!state->handle)
    throw Error(
        concat("ecCodes finds no message to begin with: ", turn.reason(CODES_FILE_NOT_FOUND)),
        "are its files installed, and ECCODES_SAMPLES_PATH right?");
  return GribMessage(std::move(state));
}

GribMessage GribMessage::clone() const {
  auto state = std::make_unique<State>();
  const Turn turn;
  state->handle = codes_handle_clone(state_->handle);
  if (!state->handle)
    throw Error(concat("ecCodes cannot copy a message: ", turn.reason(CODES_OUT_OF_MEMORY)));
  return GribMessage(std::move(state));
}

std::optional<GribMessage> GribMessage::read_next(std::FILE* file, const std::string& path) {
  auto state = std::make_unique<State>();
  const Turn turn;
  const long position = std::ftell(file);
  int status = CODES_SUCCESS;
  state->handle = codes_handle_new_from_file(nullptr, file, PRODUCT_GRIB, &status);
  if (status == CODES_SUCCESS && !state->handle) return std::nullopt;
  if (status == CODES_SUCCESS) return GribMessage(std::move(state));
  throw DataError(concat("GRIB file '", path, "': no whole message from byte ", position,
                         " on: ", turn.reason(status)),
                  "is the file truncated?");
}

void GribMessage::set(const std::string& key, int64_t value) {
  const Turn turn;
  State::check(turn, codes_set_long(state_->handle, key.c_str(), static_cast<long>(value)), key);
}

void GribMessage::set(const std::string& key, double value) {
  const Turn turn;
  State::check(turn, codes_set_double(state_->handle, key.c_str(), value), key);
}

void GribMessage::set(const std::string& key, const std::string& value) {
  const std::string reason = try_set(key, value);
  if (!reason.empty()) throw Error(concat("GRIB key '", key, "' = '", value, "': ", reason));
}

std::string GribMessage::try_set(const std::string& key, const std::string& value) {
  const Turn turn;
  size_t length = value.size();
  const int status = codes_set_string(state_->handle, key.c_str(), value.c_str(), &length);
  return status == CODES_SUCCESS ? "" : turn.reason(status);
}

void GribMessage::set(const std::string& key, std::span<const double> values) {
  const Turn turn;
  State::check(
      turn, codes_set_double_array(state_->handle, key.c_str(), values.data(), values.size()), key);
}

void GribMessage::set(const std::string& key, std::span<const int64_t> values) {
  const std::vector<long> longs(values.begin(), values.end());
  const Turn turn;
  State::check(turn, codes_set_long_array(state_->handle, key.c_str(), longs.data(), longs.size()),
               key);
}

void GribMessage::set_missing(const std::string& key) {
  const Turn turn;
  State::check(turn, codes_set_missing(state_->handle, key.c_str()), key);
}

std::optional<int64_t> GribMessage::find_integer(const std::string& key) const {
  const Turn turn;
  long value = 0;
  const int status = codes_get_long(state_->handle, key.c_str(), &value);
  if (status == CODES_NOT_FOUND) return std::nullopt;
  State::check(turn, status, key);
  return value;
}

int64_t GribMessage::integer(const std::string& key) const {
  const std::optional<int64_t> found = find_integer(key);
  if (!found) throw Error(concat("GRIB key '", key, "': is not there"));
  return *found;
}

std::string GribMessage::text(const std::string& key) const {
  const Turn turn;
  size_t length = 0;
  if (codes_get_length(state_->handle, key.c_str(), &length) != CODES_SUCCESS) return "";
  std::string value(length + 1, '\0');
  length = value.size();
  if (codes_get_string(state_->handle, key.c_str(), value.data(), &length) != CODES_SUCCESS)
    return "";
  return value.c_str();  // up to the first zero
}

std::vector<double> GribMessage::reals(const std::string& key) const {
  const Turn turn;
  size_t length = 0;
  State::check(turn, codes_get_size(state_->handle, key.c_str(), &length), key);
  std::vector<double> values(length);
  State::check(turn, codes_get_double_array(state_->handle, key.c_str(), values.data(), &length),
               key);
  return values;
}

std::span<const std::byte> GribMessage::bytes() const {
  const Turn turn;
  const void* data = nullptr;
  size_t length = 0;
  State::check(turn, codes_get_message(state_->handle, &data, &length), "totalLength");
  return {static_cast<const std::byte*>(data), length};
}

#else

bool has_grib() {
  return false;
}

struct GribMessage::State {};

namespace {

// No message comes into being without the library.
[[noreturn]] void refuse() {
  require_grib("");
  std::abort();
}

}  // namespace

GribMessage::GribMessage(std::unique_ptr<State> state) : state_(std::move(state)) {}
GribMessage::GribMessage(GribMessage&&) noexcept = default;
GribMessage& GribMessage::operator=(GribMessage&&) noexcept = default;
GribMessage::~GribMessage() = default;

GribMessage GribMessage::new_edition2() {
  refuse();
}
GribMessage GribMessage::clone() const {
  refuse();
}

std::optional<GribMessage> GribMessage::read_next(std::FILE*, const std::string&) {
  refuse();
}
void GribMessage::set(const std::string&, int64_t) {
  refuse();
}
void GribMessage::set(const std::string&, double) {
  refuse();
}
void GribMessage::set(const std::string&, const std::string&) {
  refuse();
}
void GribMessage::set(const std::string&, std::span<const double>) {
  refuse();
}
void GribMessage::set(const std::string&, std::span<const int64_t>) {
  refuse();
}
void GribMessage::set_missing(const std::string&) {
  refuse();
}
std::string GribMessage::try_set(const std::string&, const std::string&) {
  refuse();
}
std::optional<int64_t> GribMessage::find_integer(const std::string&) const {
  refuse();
}
std::string GribMessage::text(const std::string&) const {
  refuse();
}
int64_t GribMessage::integer(const std::string&) const {
  refuse();
}
std::vector<double> GribMessage::reals(const std::string&) const {
  refuse();
}
std::span<const std::byte> GribMessage::bytes() const {
  refuse();
}

#endif

}  // namespace aifs::data
