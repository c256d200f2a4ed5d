// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "anemoi/document.h"
#include "anemoi/yaml_scalar.h"
#include "core/check.h"
#include "core/json_read.h"
#ifdef AIFS_HAVE_YAML
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>
#endif

namespace aifs::anemoi {

#ifdef AIFS_HAVE_YAML

namespace {

using Json = nlohmann::ordered_json;

// A line of the text, for messages.
std::string line_of(const std::string& text, int number) {
  size_t begin = 0;
  for (int line = 0; line < number && begin != std::string::npos; ++line) {
    const size_t end = text.find('\n', begin);
    begin = end == std::string::npos ? end : end + 1;
  }
  if (begin == std::string::npos) return "";
  return text.substr(begin, std::min<size_t>(text.find('\n', begin) - begin, 200));
}

// Walks through a document without keeping it.
class Survey : public YAML::EventHandler {
 public:
  explicit Survey(size_t limit) : left_(limit) {}

  bool is_too_large() const { return left_ == 0; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override { count(); }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { count(); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {
    count();
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    count();
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    count();
  }
  void OnMapEnd() override {}

 private:
  void count() {
    if (left_ > 0) --left_;
  }

  size_t left_;
};

class YamlReader {
 public:
  YamlReader(const std::string& text, const std::string& name, const DocumentLimits& limits)
      : text_(text), name_(name), limits_(limits), left_(limits.values) {}

  Json read() {
    check_text();
    try {
      survey();
      const YAML::Node document = YAML::Load(text_);
      if (!document.IsNull()) return value(document, 0);
    } catch (const YAML::Exception& error) {
      not_yaml(error.mark);
    }
    throw ConfigError("", concat("'", name_, "' is empty"));
  }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what,
                         const std::string& hint = "") const {
    const std::string place = mark.is_null() ? "" : concat(":", mark.line + 1);
    throw ConfigError("", concat("'", name_, place, "': ", what), hint);
  }

  [[noreturn]] void not_yaml(const YAML::Mark& mark) const {
    if (mark.is_null()) throw ConfigError("", concat("'", name_, "' is not YAML"));
    const std::string line = line_of(text_, mark.line);
    const size_t indentation = std::min(line.find_first_not_of(" \t"), line.size());
    const bool has_tab = line.substr(0, indentation).find('\t') != std::string::npos;
    fail(mark,
         concat("is not YAML from column ", mark.column + 1, " on",
                has_tab ? ": there is a tab in the indentation" : ""),
         has_tab ? "indent by spaces"
                 : "look for a missing colon, quote or bracket, or a wrong indentation, there or "
                   "just before");
  }

  // Text in UTF-8, or JSON could not hold it.
  void check_text() const {
    if (text_.size() > limits_.bytes) {
      throw ConfigError(
          "", concat("'", name_, "' is larger than any configuration: ", text_.size(), " bytes"));
    }
    const auto is_binary = [](unsigned char c) {
      return c < 0x20 && c != '\t' && c != '\n' && c != '\r';
    };
    const bool is_text = std::none_of(text_.begin(), text_.end(), is_binary) && is_utf8(text_);
    if (!is_text) throw ConfigError("", concat("'", name_, "' is not a text in UTF-8"));
  }

  // Refuses a second document, and more values than memory should be asked for. A stray bracket
  // counts as a document without end to the library.
  void survey() const {
    std::istringstream stream(text_);
    YAML::Parser parser(stream);
    Survey all(2 * limits_.values + 2);  // names count, too
    const bool has_one = parser.HandleNextDocument(all);
    if (has_one && parser.HandleNextDocument(all)) {
      throw ConfigError("", concat("'", name_, "' goes on after the end of its document"),
                        "keep what is between two lines of ---, and look for a bracket too many");
    }
    if (all.is_too_large())
      throw ConfigError("", concat("'", name_, "' holds more than ", limits_.values, " values"));
  }

  void count(const YAML::Mark& mark, int depth) {
    if (depth > limits_.depth)
      fail(mark, concat("more than ", limits_.depth, " levels in each other"));
    if (left_-- == 0) {
      fail(mark, concat("more than ", limits_.values,
                        " values, aliases counted each time they are used"));
    }
  }

  Json value(const YAML::Node& node, int depth) {
    count(node.Mark(), depth);
    if (node.IsMap()) return map(node, depth);
    if (node.IsSequence()) {
      Json list = Json::array();
      for (const YAML::Node& element : node)
        list.push_back(value(element, depth + 1));
      return list;
    }
    return node.IsScalar() ? scalar(node) : Json();
  }

  Json map(const YAML::Node& node, int depth) {
    Json object = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar() && !entry.first.IsNull())
        fail(entry.first.Mark(), "a name must be a single word, not a list or a map");
      const std::string key = entry.first.IsNull() ? "null" : entry.first.Scalar();
      if (key == "<<") {
        fail(entry.first.Mark(), "merged maps (<<) are not read",
             "write their keys out, or dump the configuration with OmegaConf");
      }
      if (object.contains(key))
        fail(entry.first.Mark(), concat("'", key, "' is there twice"), "keep one of them");
      object[key] = value(entry.second, depth + 1);
    }
    return object;
  }

  Json scalar(const YAML::Node& node) const {
    const std::string standard = "tag:yaml.org,2002:", &tag = node.Tag();
    if (tag == "!" || tag == standard + "str") return node.Scalar();
    bool known = tag.empty() || tag == "?";
    for (const char* type : {"int", "float", "bool", "null"})
      known = known || tag == standard + type;
    if (!known) fail(node.Mark(), concat("the tag ", tag, " has no meaning here"));
    return yaml_scalar(node.Scalar());
  }

  const std::string& text_;
  const std::string& name_;
  const DocumentLimits& limits_;
  size_t left_;
};

}  // namespace

bool reads_yaml() {
  return true;
}

Json parse_yaml(const std::string& text, const std::string& name, const DocumentLimits& limits) {
  return YamlReader(text, name, limits).read();
}

#else

bool reads_yaml() {
  return false;
}

nlohmann::ordered_json parse_yaml(const std::string&, const std::string& name,
                                  const DocumentLimits&) {
  throw ConfigError(
      "", concat("'", name, "' is YAML, which this program was built without"),
      "install libyaml-cpp-dev and build again, or turn the file into JSON: python3 -c 'import "
      "json, sys; from omegaconf import OmegaConf; "
      "json.dump(OmegaConf.to_container(OmegaConf.load(sys.argv[1])), sys.stdout)' IN.yaml > "
      "OUT.json");
}

#endif

}  // namespace aifs::anemoi
