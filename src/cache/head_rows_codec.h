// One head's rows in a state file.
//
//   u8  compressing    whether its rule applies
//   i64 tokens, first, origin, dropped    as in HeadRows: context, oldest live row, position of page 0's row 0, dropped
//   anchors            min(sinks, tokens) K rows, then as many V rows; only where compressing
//   per page           its live K rows, then its live V rows; the page's other rows are not written
//   sums               width doubles of K, then of V; only where compressing and the rule compensates
#pragma once

#include "base/binary_reader.h"
#include "base/binary_writer.h"
#include "cache/head_rows.h"

namespace razorkv {

class HeadRowsCodec {
 public:
  static void write(BinaryWriter& out, const HeadRows& head);

  /// Fills `head`, which is empty and under the rule (and compressing, or not) that the file is to have. Rows get the
  /// place in their pages that they had. Throws FileError where counts are not those that `tokens` tokens leave under
  /// the rule, OutOfBudget, OutOfMemory; `head` may be dropped only then.
  static void read(BinaryReader& in, HeadRows& head, PagePool& pool, std::int64_t tokens);

 private:
  struct LiveRows;
  static LiveRows live_rows(const HeadRows& head, std::int64_t page);
};

}  // namespace razorkv
