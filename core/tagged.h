// SPDX-License-Identifier: Apache-2.0
// Options of one of several kinds, told by a key: {"kind": "huber", "delta": 1}. Each kind is a
// struct with its options, their bind() and what they make, derived from one base, and a line in
// the table of the base:
//
//   struct Loss {
//     virtual ~Loss() = default;
//     virtual void bind(config::Binder&) {}             // the options beside "kind"
//     virtual void validate(const std::string& path) const {}
//     static const std::vector<config::Kind<Loss>>& kinds();   // {config::kind<Loss,
//     Huber>("huber")}
//   };
//   struct Options {
//     config::Tagged<Loss> kind;                         // the first of the table
//     void bind(config::Binder& b) { kind.bind(b, "kind", {"what is minimised"}); }
//   };
//
// An option that only other kinds read is a ConfigError.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/config.h"

namespace aifs::config {

// A line of a table of kinds.
template <class Base>
struct Kind {
  const char* name;
  std::unique_ptr<Base> (*make)();  // with its defaults
  std::unique_ptr<Base> (*copy)(const Base&);
};

template <class Base, class T>
Kind<Base> kind(const char* name) {
  return {name, []() -> std::unique_ptr<Base> { return std::make_unique<T>(); },
          [](const Base& other) -> std::unique_ptr<Base> {
            return std::make_unique<T>(static_cast<const T&>(other));
          }};
}

// Holds the options of every kind, of which those of one are in use. A value: copies share
// nothing.
template <class Base>
class Tagged {
 public:
  Tagged() {
    for (const Kind<Base>& kind : Base::kinds())
      all_.push_back(kind.make());
  }
  // Throws Error if there is no such kind.
  explicit Tagged(const std::string& name) : Tagged() { choose(name); }
  // T is one of the kinds.
  template <class T>
  requires std::is_base_of_v<Base, T>
  explicit Tagged(T options) : Tagged() { set(std::move(options)); }
  Tagged(const Tagged& other) : chosen_(other.chosen_) {
    for (size_t i = 0; i < other.all_.size(); ++i)
      all_.push_back(Base::kinds()[i].copy(*other.all_[i]));
  }
  Tagged(Tagged&& other) noexcept = default;
  Tagged& operator=(Tagged other) noexcept {
    std::swap(all_, other.all_);
    std::swap(chosen_, other.chosen_);
    return *this;
  }
  ~Tagged() = default;

  std::string name() const { return Base::kinds()[chosen_].name; }
  const Base& operator*() const { return *all_[chosen_]; }
  const Base* operator->() const { return all_[chosen_].get(); }
  // The options in use if they are of type T, else nullptr.
  template <class T>
  const T* as() const {
    return dynamic_cast<const T*>(all_[chosen_].get());
  }

  // The options of kind T, chosen or not.
  template <class T>
  T& of() {
    for (const std::unique_ptr<Base>& own : all_)
      if (T* found = dynamic_cast<T*>(own.get())) return *found;
    throw Error(concat("options of no kind: ", typeid(T).name()));
  }
  // Calls visit(name, options) for every kind, chosen or not, in the order of the table.
  template <class F>
  void for_each(F visit) {
    for (size_t i = 0; i < all_.size(); ++i)
      visit(Base::kinds()[i].name, *all_[i]);
  }
  template <class F>
  void for_each(F visit) const {
    for (size_t i = 0; i < all_.size(); ++i)
      visit(Base::kinds()[i].name, std::as_const(*all_[i]));
  }

  void choose(const std::string& name) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (name != Base::kinds()[i].name) continue;
      chosen_ = i;
      return;
    }
    throw Error(concat("no kind '", name, "'"));
  }
  template <class T>
  void set(T options) {
    for (size_t i = 0; i < all_.size(); ++i) {
      Base& own = *all_[i];
      if (typeid(own) != typeid(T)) continue;
      static_cast<T&>(own) = std::move(options);
      chosen_ = i;
      return;
    }
    throw Error(concat("options of no kind: ", typeid(T).name()));
  }

  // Declares the key that tells the kind, and the options of all kinds.
  void bind(Binder& b, const char* key, Doc doc) {
    std::vector<std::string> names;
    for (const Kind<Base>& kind : Base::kinds())
      names.emplace_back(kind.name);
    b.tag(
        key, names, std::move(doc), [this](size_t i) { chosen_ = i; }, [this] { return name(); });
    for (size_t i = 0; i < all_.size(); ++i)
      b.options_of_kind(names[i], fields_of(*all_[i]));
  }

 private:
  std::vector<std::unique_ptr<Base>> all_;  // as in the table
  size_t chosen_ = 0;
};

}  // namespace aifs::config
