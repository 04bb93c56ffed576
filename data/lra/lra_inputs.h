// Readers of the Long Range Arena's sets (Tay et al. 2021) in the layouts in which they are distributed. Splits are
// train, valid (or dev) and test; other names are a ConfigError. Labels are tgt_text, as decimal numbers.
//
//   lra_listops     basic_{train,val,test}.tsv. src_text: words separated by single spaces, parentheses dropped.
//   lra_text        [aclImdb/]{train,test}/{neg,pos}/*.txt, in the order of file names. src_text: the file's bytes,
//                   "<br />" included. Labels 0 neg, 1 pos. valid is the test set, as in the reference.
//   lra_retrieval   new_aan_pairs.{train,eval,test}.tsv, rows label, id1, id2, text1, text2. The texts are kept
//                   byte for byte, quotes and escapes included, as in the reference.
//   lra_image       CIFAR-10, binary version, [cifar-10-batches-bin/]{data_batch_1..5,test_batch}.bin, as grey
//                   pictures. valid is the last tenth of the training pictures.
//   fashion_mnist   {train,t10k}-{images-idx3,labels-idx1}-ubyte, plain or .gz. valid as for lra_image.
//   lra_pathfinder  files of generate_pathfinder, or a tree imgs/N/*.png, metadata/N.npy (the folder itself, or one
//                   that holds [pathfinder32/]curv_contour_length_14). Such a tree is cut 80/10/10 in the order of its
//                   metadata; it needs a build with libpng.
//
// All but lra_listops have binary sources: bytes that need not be UTF-8. Pictures are rows * columns bytes, row by row.
#pragma once

#include <memory>
#include <string>

#include "data/inputs.h"
#include "data/item.h"

namespace tactus {

/// ConfigError for another split or options that the format does not use, DataError for missing or damaged files.
std::unique_ptr<ItemReader> open_lra_listops(const InputOptions& options, const std::string& split, OnError on_error);
std::unique_ptr<ItemReader> open_lra_text(const InputOptions& options, const std::string& split, OnError on_error);
std::unique_ptr<ItemReader> open_lra_retrieval(const InputOptions& options, const std::string& split, OnError on_error);
std::unique_ptr<ItemReader> open_lra_image(const InputOptions& options, const std::string& split, OnError on_error);
std::unique_ptr<ItemReader> open_fashion_mnist(const InputOptions& options, const std::string& split, OnError on_error);
std::unique_ptr<ItemReader> open_lra_pathfinder(const InputOptions& options, const std::string& split,
                                                OnError on_error);

}  // namespace tactus
