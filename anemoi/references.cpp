// SPDX-License-Identifier: Apache-2.0
#include "anemoi/references.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "anemoi/yaml_scalar.h"
#include "core/check.h"
#include "core/join.h"
#include "core/json_read.h"

namespace aifs::anemoi {

namespace {

using Json = nlohmann::ordered_json;
using Keys = std::vector<std::string>;
using Failures = std::map<std::string, std::string>;  // as in ResolvedTree

constexpr size_t kMostValues = 500'000, kMostBytes = size_t{16} << 20;
constexpr size_t kMostReferences = 50;                      // one leading to the next
constexpr size_t kMostInText = 100, kMostInEachOther = 20;  // references in one text
constexpr size_t kMostLevels = 200;

struct Failure {
  std::string what;
};

// Returns where the braces that open at `begin` close, or npos.
size_t closing_brace(const std::string& text, size_t begin) {
  int open = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '{') ++open;
    if (text[i] == '}' && --open == 0) return i;
  }
  return std::string::npos;
}

std::string stripped(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

class Resolver {
 public:
  explicit Resolver(const Json& root) : root_(root) {}

  ResolvedTree run() {
    Keys path;
    out_.tree = value(root_, path);
    return std::move(out_);
  }

 private:
  // The value of what stands at `path`, without references.
  Json value(const Json& node, Keys& path) {
    spend(node.is_string() ? node.get_ref<const std::string&>().size() : 0);
    if (levels_ > kMostLevels) {
      throw ConfigError(
          "", concat("its references stand for more than ", kMostLevels, " levels in each other"));
    }
    if (node.is_object()) {
      Json object = Json::object();
      ++levels_;
      for (const auto& [key, member] : node.items()) {
        path.push_back(key);
        object[key] = value(member, path);
        path.pop_back();
      }
      --levels_;
      return object;
    }
    if (node.is_array()) {
      Json list = Json::array();
      ++levels_;
      for (const Json& element : node) {
        path.push_back(std::to_string(list.size()));
        list.push_back(value(element, path));
        path.pop_back();
      }
      --levels_;
      return list;
    }
    if (!node.is_string()) return node;
    const auto& text = node.get_ref<const std::string&>();
    try {
      return text.find("${") == std::string::npos ? node : replaced(text, path);
    } catch (const Failure& failure) {
      out_.failures[join(path, ".")] = failure.what;
      return node;
    }
  }

  void spend(size_t bytes) {
    ++values_;
    bytes_ += bytes;
    if (values_ <= kMostValues && bytes_ <= kMostBytes) return;
    throw ConfigError("",
                      concat("its references stand for more than ", kMostValues, " values or ",
                             kMostBytes >> 20, " MiB"),
                      "no configuration is as large: look for sections that repeat each other");
  }

  // Resolves a text with references: to any value if it is one reference, else to a text.
  Json replaced(const std::string& text, Keys& path) {
    check_number(text, path);
    std::string whole;
    size_t done = 0;
    for (size_t begin = text.find("${"); begin != std::string::npos;
         begin = text.find("${", done)) {
      const size_t end = closing_brace(text, begin + 1);
      if (end == std::string::npos) throw Failure{"a brace is not closed"};
      Json inner = referred(text.substr(begin + 2, end - begin - 2), path);
      if (begin == 0 && end + 1 == text.size()) return inner;
      if (inner.is_structured()) throw Failure{"a whole section cannot stand within a text"};
      const std::string part = text.substr(done, begin - done) + shown(inner);
      spend(part.size());
      whole += part;
      done = end + 1;
    }
    return whole + text.substr(done);
  }

  // Refuses texts of very many references, which may stand in each other.
  static void check_number(const std::string& text, const Keys& path) {
    size_t number = 0, open = 0, most_open = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '{') most_open = std::max(most_open, ++open);
      if (text[i] == '}' && open > 0) --open;
      if (text.compare(i, 2, "${") == 0) ++number;
    }
    if (number <= kMostInText && most_open <= kMostInEachOther) return;
    throw ConfigError(join(path, "."),
                      concat("holds ", number, " references in one text; there can be ",
                             kMostInText, ", and ", kMostInEachOther, " in each other"));
  }

  static std::string shown(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  // The value of what stands between the braces.
  Json referred(std::string inner, Keys& path) {
    if (inner.find("${") != std::string::npos) inner = shown(replaced(inner, path));
    inner = stripped(inner);
    if (inner.starts_with("oc.env:")) return from_environment(inner.substr(7));
    if (inner.starts_with("oc.decode:")) return yaml_scalar(stripped(inner.substr(10)));
    if (inner.find(':') != std::string::npos)
      throw Failure{concat("'", inner.substr(0, inner.find(':')), "' cannot be resolved here")};
    Keys target = keys_of(inner, path);
    const std::string name = join(target, ".");
    if (contains(active_, name)) throw Failure{concat("'", name, "' leads back to itself")};
    if (active_.size() >= kMostReferences) throw Failure{"too many references follow each other"};
    active_.push_back(name);
    Failures outside = std::exchange(out_.failures, {});
    const auto leave = [&] {
      active_.pop_back();
      return std::exchange(out_.failures, std::move(outside));
    };
    Json result;
    try {
      const Json& node = lookup(target);
      out_.referenced.insert(name);
      result = value(node, target);
    } catch (...) {
      leave();
      throw;
    }
    // Moves what failed there to where the reference stands, since the values stand there, too.
    for (const auto& [at, what] : leave()) {
      if (at == name) throw Failure{what};
      out_.failures[join(path, ".") + at.substr(name.size())] = what;
    }
    return result;
  }

  static Json from_environment(const std::string& argument) {
    const size_t comma = argument.find(',');
    const std::string name = stripped(argument.substr(0, comma));
    if (const char* set = std::getenv(name.c_str())) {
      if (!is_utf8(set))
        throw Failure{concat("the environment variable ", name, " is not a text in UTF-8")};
      return std::string(set);
    }
    if (comma != std::string::npos) return yaml_scalar(stripped(argument.substr(comma + 1)));
    throw Failure{concat("the environment variable ", name, " is not set")};
  }

  // "a.b[0].c" as keys; leading dots are relative to where the reference stands.
  static Keys keys_of(const std::string& reference, const Keys& path) {
    const size_t dots = std::min(reference.find_first_not_of('.'), reference.size());
    if (dots > path.size()) throw Failure{concat("'", reference, "' leads out of the document")};
    Keys keys;
    if (dots > 0) keys.assign(path.begin(), path.end() - static_cast<ptrdiff_t>(dots));
    std::string key;
    const auto finish = [&] {
      if (!key.empty()) keys.push_back(std::exchange(key, ""));
    };
    for (const char c : reference.substr(dots)) {
      if (c == '.' || c == '[' || c == ']') {
        finish();
      } else {
        key += c;
      }
    }
    finish();
    if (keys.empty()) throw Failure{"a reference without a name"};
    return keys;
  }

  const Json& lookup(const Keys& keys) {
    const Json* node = &root_;
    Keys path;  // of the node
    for (const std::string& key : keys) {
      if (node->is_string() &&
          node->get_ref<const std::string&>().find("${") != std::string::npos) {
        kept_.push_back(through(node->get<std::string>(), path));
        node = &kept_.back();
      }
      const Json* member = nullptr;
      if (node->is_object() && node->contains(key)) member = &node->at(key);
      if (node->is_array() && !key.empty() && key.size() < 7 &&
          key.find_first_not_of("0123456789") == std::string::npos &&
          std::stoul(key) < node->size()) {
        member = &node->at(std::stoul(key));
      }
      if (!member) throw Failure{concat("'", join(keys, "."), "' is not there")};
      node = member;
      path.push_back(key);
    }
    return *node;
  }

  // The section that a reference leads through. What fails in it fails again where it is needed.
  Json through(const std::string& text, Keys& path) {
    Failures outside = out_.failures;
    Json section = replaced(text, path);
    out_.failures = std::move(outside);
    return section;
  }

  const Json& root_;
  ResolvedTree out_;
  std::vector<std::string> active_;
  std::deque<Json> kept_;  // sections that a reference leads through
  size_t values_ = 0, bytes_ = 0;
  size_t levels_ = 0;  // of what is being made
};

}  // namespace

ResolvedTree resolve_references(const Json& tree) {
  return Resolver(tree).run();
}

}  // namespace aifs::anemoi
