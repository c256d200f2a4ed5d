// SPDX-License-Identifier: Apache-2.0
#include "conformance/expectation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <vector>

#include "conformance/report.h"
#include "core/join.h"

namespace aifs::conformance {

namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n"), end = text.find_last_not_of(" \t\n");
  return begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
}

std::vector<std::string> split(const std::string& text, const std::regex& separator) {
  std::vector<std::string> parts;
  const std::sregex_token_iterator end;
  for (std::sregex_token_iterator it(text.begin(), text.end(), separator, -1); it != end; ++it) {
    if (const std::string part = trimmed(*it); !part.empty()) parts.push_back(part);
  }
  return parts;
}

// Bytes or seconds that stand for one unit of a limit.
void set_limit(double number, const std::string& unit, IsolationLimits& limits) {
  if (unit.starts_with("s") || unit.starts_with("min")) {
    limits.seconds = static_cast<unsigned>(std::ceil(number * (unit.starts_with("m") ? 60 : 1)));
    return;
  }
  const double base = unit.find('i') == std::string::npos ? 1000.0 : 1024.0;
  const double power = unit[0] == 'k' ? 1 : unit[0] == 'm' ? 2 : unit[0] == 'g' ? 3 : 0;
  limits.extra_bytes = static_cast<size_t>(number * std::pow(base, power));
}

// Takes the conditions out of a text. Limits without a number are those that always hold here.
std::string without_conditions(std::string text, IsolationLimits& limits) {
  static const std::regex kLimit(
      "\\b(?:with)?in (?:less than |at most )?(\\d+(?:\\.\\d+)?) ?"
      "(ki?b|mi?b|gi?b|bytes|s|sec(?:onds?)?|min(?:utes?)?)\\b(?: of memory)?");
  std::smatch match;
  while (std::regex_search(text, match, kLimit)) {
    set_limit(std::stod(match[1]), match[2], limits);
    text = match.prefix().str() + match.suffix().str();
  }
  static const std::regex kPlain(
      "\\b(?:with)?in (?:a |the )?(?:bounded|limited) (?:memory|time)\\b|"
      "\\b(?:with)?in (?:a |the )?(?:memory|time)(?: and (?:a )?(?:memory|time))? limits?\\b|"
      "\\bwith (?:a )?(?:memory|time)(?: and (?:memory|time))? limits?\\b|"
      "\\b(?:but )?(?:no|never (?:a )?|without (?:a )?) ?(?:crash(?:es|ing)?|hang(?:s|ing)?)\\b");
  return std::regex_replace(text, kPlain, "");
}

struct Phrase {
  std::regex words;
  void (*apply)(Expectation&);
};

const std::vector<Phrase>& phrases() {
  static const std::vector<Phrase> kPhrases{
      {std::regex("(?:(?:to )?read(?:s|ing)?(?: it)?(?: (?:the )?values)?|(?:the )?values)"
                  "(?: (?:as|of|in|as in|like)(?: the)? good(?: one| store|\\.zarr)?)?"),
       [](Expectation& e) { e.read = true; }},
      {std::regex("(?:an? )?(?:clear )?errors?|(?:to )?refus(?:e|es|ed|al|ing)(?: it)?|"
                  "reject(?:s|ed|ing)?(?: it)?|raises?(?: an error)?|"
                  "stops?(?: with an? (?:clear )?error)?"),
       [](Expectation& e) { e.refuse = true; }},
      {std::regex("(?:the )?(?:wrong|other|any|different) values?"),
       [](Expectation& e) { e.any_values = true; }},
      {std::regex("(?:treat|take|count|handle)(?:s|ing)? (?:the )?(?:\\w+ )?(?:rows?|dates?) as "
                  "missing(?: ones)?"),
       [](Expectation& e) { e.missing_rows = true; }},
      {std::regex("(?:an? )?errors? (?:when|if|once|where) (?:it is |they are )?"
                  "(?:used (?:to|for) )?normali[sz](?:e|ed|ing|ation)"),
       [](Expectation& e) { e.refuse_to_normalise = true; }}};
  return kPhrases;
}

// Ways that a clause of a note opens. `outcome`: what it speaks of.
bool opens(const std::string& clause, const std::string& outcome) {
  static const std::string kRight =
      "right|fine|correct|acceptable|allowed|permitted|as good|good enough|valid|ok|okay";
  const std::regex said("\\b" + outcome + ".*\\b(?:is|are|would be)\\b.*\\b(?:" + kRight + ")\\b|" +
                        "\\bor (?:to |else )?" + outcome + "\\b|" +
                        "\\b(?:may|can|could|might) (?:also |as well |instead )*(?:be )?" +
                        outcome + "\\b");
  return std::regex_search(clause, said);
}

std::vector<std::string> clauses_of(const std::string& note) {
  static const std::regex kEnd("[;:]|\\.(?:\\s|$)");
  return split(lower_case(note), kEnd);
}

void apply_note(const std::string& note, Expectation& expectation) {
  static const std::regex kForbids("\\b(?:must not|never|cannot|may not|not as right)\\b");
  static const std::regex kUnnoticed("\\bmay go unnoticed\\b");
  for (const std::string& clause : clauses_of(note)) {
    if (std::regex_search(clause, kForbids)) continue;
    if (opens(clause, "(?:refus(?:e|es|ed|al|ing)|reject(?:ed|ing)?|an? (?:clear )?error|raise)"))
      expectation.refuse = true;
    if (opens(clause, "read(?:ing)?(?! or write)")) expectation.read = true;
    if (opens(clause, "(?:treat|tak|count)(?:e|ed|en|ing)?\\b.*\\bas missing"))
      expectation.missing_rows = true;
    if (opens(clause, "(?:wrong|other|different) values") || std::regex_search(clause, kUnnoticed))
      expectation.any_values = true;
  }
}

float number_of(const std::string& text) {
  if (text == "nan") return std::numeric_limits<float>::quiet_NaN();
  if (text.find("inf") != std::string::npos) {
    const float infinity = std::numeric_limits<float>::infinity();
    return text[0] == '-' ? -infinity : infinity;
  }
  return std::stof(text);
}

// "2", "1 and 3", "0, 2 and 3", "1 to 3", "1-3".
std::vector<int64_t> rows_in(const std::string& text) {
  static const std::regex kToken("(-|to|,|and)|(\\d+)");
  std::vector<int64_t> rows;
  bool range = false;
  const std::sregex_iterator end;
  for (std::sregex_iterator it(text.begin(), text.end(), kToken); it != end; ++it) {
    if ((*it)[1].matched) {
      range = (*it)[1] == "-" || (*it)[1] == "to";
      continue;
    }
    const int64_t row = std::stoll((*it)[2]);
    for (int64_t between = rows.empty() ? row : rows.back() + 1; range && between < row; ++between)
      rows.push_back(between);
    rows.push_back(row);
    range = false;
  }
  return rows;
}

}  // namespace

Expectation parse_expectation(const std::string& must, const std::string& note) {
  Expectation expectation;
  static const std::regex kSeparator("[,;]|\\b(?:or|and|but|either|else)\\b");
  const std::string outcomes = without_conditions(lower_case(must), expectation.limits);
  const std::vector<std::string> parts = split(outcomes, kSeparator);
  if (parts.empty() && lower_case(must).find("crash") != std::string::npos) {
    expectation.refuse = expectation.any_values = true;  // that it goes on is all that is asked
  } else if (parts.empty()) {
    throw NotUnderstood(concat("must: '", must, "'"));
  }
  for (const std::string& part : parts) {
    const auto known = std::find_if(phrases().begin(), phrases().end(), [&](const Phrase& phrase) {
      return std::regex_match(part, phrase.words);
    });
    if (known == phrases().end()) throw NotUnderstood(concat("must: '", part, "' in '", must, "'"));
    known->apply(expectation);
  }
  // A store that is refused when it is used for something has been read before.
  if (expectation.refuse_to_normalise && !expectation.refuse) expectation.read = true;
  apply_note(note, expectation);
  return expectation;
}

std::map<int64_t, float> noted_values(const std::string& note) {
  static const std::regex kRows(
      "(?:\\brows? (\\d+(?:(?: ?, ?| and | ?- ?| to )\\d+)*)|\\b(?:all|every)(?: rows?| values?)?) "
      "(?:is|are|reads?(?: as)?|holds?|gives?|must be) (?:all |full of |equal to )?"
      "(nan|[-+]?inf(?:inity)?|[-+]?\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?)(?: everywhere)?\\s*$");
  std::map<int64_t, float> values;
  for (const std::string& clause : clauses_of(note)) {
    std::smatch match;
    if (!std::regex_search(clause, match, kRows)) continue;
    const float value = number_of(match[2]);
    if (!match[1].matched) values[-1] = value;
    for (const int64_t row : rows_in(match[1]))
      values[row] = value;
  }
  return values;
}

bool speaks_of_values(const std::string& note) {
  static const std::regex kWords(
      "\\brows? \\d|\\bvalues? (?:is|are|differ|of)\\b|\\bfill(?:ed)?\\b|\\bread(?:s|ing)? (?:it "
      ")?as ");
  return std::regex_search(lower_case(note), kWords);
}

}  // namespace aifs::conformance
