// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_options.h"

#include <nlohmann/json.hpp>

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

// A date, or a percentage of the dates. The percentage is checked when the number of dates is known
// (data/selection.h).
void bind_date_or_percentage(config::Binder& b, const char* key, std::string& value,
                             config::Doc doc) {
  b.text(key, value, std::move(doc), config::TextKind::kDate);
  b.fields().back().type += " or percentage of the dates such as \"80%\"";
  also_accept(b, value, [](const std::string& text) { return text.ends_with('%'); });
}

}  // namespace

void DatasetOptions::bind(config::Binder& b) {
  b.text("dataset", dataset, {"folder of an Anemoi dataset, usually named *.zarr"},
         config::TextKind::kPath);
  bind_date_or_percentage(b, "start", start,
                          {"first date that is used; empty: from the beginning"});
  bind_date_or_percentage(
      b, "end", end,
      {"last date that is used; an incomplete date ends with its period; empty: to the end"});
  b.text(
      "frequency", frequency,
      {"use every k-th date only, from the first one on; empty: all; a multiple of the dataset's"},
      config::TextKind::kDuration);
  also_accept(b, frequency, [](const std::string& text) { return text.empty(); });
  b.text_list("select", select, {"variables that are used, in this order; empty: all"});
  b.text_list("drop", drop, {"variables that are left out, after select"});
  b.boolean("allow_missing_chunks", allow_missing_chunks,
            {"read absent chunks as their fill value even where no date is marked as missing"});
  b.integer("cache_mib", cache_mib, {.min = 0, .max = 1 << 20},
            {"memory for decoded chunks, used only if a chunk holds several dates", "MiB"});
}

}  // namespace aifs::data
