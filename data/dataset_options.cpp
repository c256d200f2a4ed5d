// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_options.h"

#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs::data {

namespace {

// Lets the field bound last also take texts that `accepts` says yes to.
void also_accept(config::Binder& b, std::string& value, bool (*accepts)(const std::string&)) {
  config::Field& field = b.fields().back();
  field.read = [&value, accepts, read = field.read](const config::Json& json,
                                                    const std::string& path,
                                                    const config::ReadContext& context) {
    if (json.is_string() && accepts(json.get<std::string>())) {
      value = json.get<std::string>();
    } else {
      read(json, path, context);
    }
  };
}

}  // namespace

void bind_date_or_share(config::Binder& b, const char* key, std::string& value, config::Doc doc) {
  b.text(key, value, std::move(doc), config::TextKind::kDate);
  b.fields().back().type += ", or percentage of the dates such as \"80%\"";
  also_accept(b, value, [](const std::string& text) { return !is_date(text); });
}

bool is_date(const std::string& text) {
  const bool is_hour = text.size() == 5 && text.ends_with(":00");
  return !text.empty() && !text.ends_with('%') && !is_hour;
}

void DatasetOptions::bind(config::Binder& b) {
  b.text("dataset", dataset, {"folder of an Anemoi dataset, usually named *.zarr"},
         config::TextKind::kPath);
  bind_date_or_share(b, "start", start, {"first date that is used; empty: from the beginning"});
  bind_date_or_share(
      b, "end", end,
      {"last date that is used; an incomplete date ends with its period; empty: to the end"});
  b.text(
      "frequency", frequency,
      {"use every k-th date only, from the first one on; empty: all; a multiple of the dataset's"},
      config::TextKind::kDuration);
  also_accept(b, frequency, [](const std::string& text) { return text.empty(); });
  b.text_list("select", select, {"variables that are used, in this order, or one; empty: all"});
  b.text_list("drop", drop, {"variables that are left out, after select, or one"});
  b.boolean(
      "strict", strict,
      {"refuse dates whose chunks are absent though they are not marked as missing; else they "
       "are read as the fill value of the array, as Anemoi does"});
  b.boolean("allow_missing_chunks", allow_missing_chunks,
            {"has no effect: older configurations name what is now done without `strict`"});
  b.integer("cache_mib", cache_mib, {.min = 0, .max = 1 << 20},
            {"memory for decoded chunks, used only if a chunk holds several dates", "MiB"});
}

void DatasetOptions::validate(const std::string& path) const {
  if (strict && allow_missing_chunks) {
    throw ConfigError(path + ".strict", "contradicts allow_missing_chunks",
                      "leave one of them out");
  }
}

}  // namespace aifs::data
