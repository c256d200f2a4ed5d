// SPDX-License-Identifier: Apache-2.0
#include "conformance/anemoi_form.h"

#include "conformance/report.h"

namespace aifs::conformance {

Json anemoi_form(const Json& json) {
  if (!json.is_structured()) return json;
  Json form = json.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : json.items()) {
    if (json.is_array())
      form.push_back(anemoi_form(value));
    else
      form[key == "class" ? "_target_" : key] = anemoi_form(value);
  }
  return form;
}

const Json& section_of(const anemoi::Imported& imported, const std::string& name) {
  for (const anemoi::Remark& remark : imported.remarks) {
    if (remark.verdict == anemoi::Verdict::kNotHonoured)
      throw NotSupported(concat(remark.path, ": ", remark.text));
  }
  return imported.config().at(name);
}

}  // namespace aifs::conformance
