// WMT 2014 translation data as released: several parallel training corpora as pairs of text files, and test sets as
// SGML.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"

namespace tactus {

/// `path`: the folder into which the archives were unpacked. Split train: every pair NAME.SOURCE / NAME.TARGET below
/// PATH/training and PATH itself whose NAME ends in the language pair (europarl-v7.de-en, commoncrawl.de-en,
/// news-commentary-v9.de-en), in order of their names; ids are NAME-LINE, subset is NAME. Other splits (newstest2013,
/// newstest2014-deen, ...): PATH/{dev,test,.}/SPLIT.{SOURCE,TARGET}, or SPLIT-src.SOURCE.sgm and SPLIT-ref.TARGET.sgm;
/// of a bare newstestYYYY the SGML files of any language pair. `source` and `target` default to en and de.
std::unique_ptr<ItemReader> open_wmt14(const InputOptions& options, const std::string& split, OnError on_error);

/// Segments of an SGML test set in order: the text of each <seg>, entities &amp; &lt; &gt; &quot; &apos; resolved.
/// DataError for a file without segments or one that ends inside a segment.
std::vector<std::string> read_sgm_segments(const std::string& path);

}  // namespace tactus
