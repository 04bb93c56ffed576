#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

// Five German segments with two references each and a second system, shared by the tests of this folder.

namespace tactus::testing {

using Lines = std::vector<std::string>;

inline const Lines kHypotheses = {"Der Zug fährt um halb zehn ab.", "Das kostet fünfundzwanzig Euro, bitte.",
                                  "Ich möchte zwei Kaffee bestellen", "Am 3. Mai 2021 waren es 1,5 Grad - kalt!",
                                  "\"Guten Tag\", sagte er."};
inline const Lines kReferences = {"Der Zug fährt um halb zehn.", "Das macht fünfundzwanzig Euro, bitte.",
                                  "Ich möchte gerne zwei Kaffee bestellen.", "Am 3. Mai 2021 war es 1,5 Grad kalt!",
                                  "\"Guten Tag!\", sagte er leise."};
inline const Lines kSecondReferences = {"Um halb zehn fährt der Zug ab.", "Das kostet 25 Euro, bitte.",
                                        "Zwei Kaffee, bitte.", "Es waren 1,5 Grad am 3. Mai 2021.",
                                        "Er sagte: \"Guten Tag.\""};
inline const Lines kOtherSystem = {"Ein Zug fährt um halb zehn.", "Das kostet zwanzig Euro, bitte.",
                                   "Ich möchte gerne einen Kaffee bestellen.", "Am 3. Mai war es 1,5 Grad.",
                                   "\"Guten Tag\", sagt er leise."};

/// Message of the E that f throws; a failure of the test and "" when it throws none. Other types pass through.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace tactus::testing
