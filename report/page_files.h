// SPDX-License-Identifier: Apache-2.0
// The files of report/page as texts: the build makes a source of them (cmake/embed_files.cmake).
#pragma once

namespace aifs::report {

extern const char* const kReportHtml;
extern const char* const kReportCss;
extern const char* const kSphereScript;  // also of the page of `aifs-train graph plot`
extern const char* const kFigureScript;
extern const char* const kCurvesScript;
extern const char* const kScorecardScript;
extern const char* const kMapsScript;
extern const char* const kReportScript;
extern const char* const kCoastlines;

}  // namespace aifs::report
