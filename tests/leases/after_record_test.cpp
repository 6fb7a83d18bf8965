#include "engine/after_record.hpp"

#include "prelude.hpp"

using pawl::engine::after_record;
using pawl::engine::AfterRecord;
using pawl::engine::FailedRecord;
using pawl::postgres::FailureClass;

TEST_CASE("what follows when a call's record failed") {
  struct Row {
    FailureClass failure;
    AfterRecord by_itself;     ///< where the handler had no part in it
    AfterRecord with_handler;  ///< where its own record ran in the transaction
    AfterRecord not_kept;      ///< as that, where a lease given back keeps no response
  };
  using enum AfterRecord;
  const std::vector<Row> rows{
      {FailureClass::kFenced, kUnplaced, kUnplaced, kUnplaced},
      {FailureClass::kOutOfOrder, kUnplaced, kUnplaced, kUnplaced},
      {FailureClass::kRowMissing, kUnplaced, kUnplaced, kUnplaced},
      {FailureClass::kTransactionEnded, kTaken, kTaken, kTaken},
      {FailureClass::kContention, kRepeat, kGivenBack, kRepeat},
      {FailureClass::kResource, kRepeat, kGivenBack, kRepeat},
      {FailureClass::kProgram, kGivenBack, kGivenBack, kRepeat},
      {FailureClass::kMessage, kGivenBack, kGivenBack, kGivenBack},
      {FailureClass::kReadOnly, kGivenBack, kGivenBack, kGivenBack},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    FailedRecord record{.failure = rows[i].failure};
    CHECK(after_record(record) == rows[i].by_itself);
    record.handler_begun = true;
    CHECK(after_record(record) == rows[i].with_handler);
    record.keeps_responses = false;
    CHECK(after_record(record) == rows[i].not_kept);
    // Of a lease that is another's nothing is stored, and of a lost connection nothing is known.
    record.lease_lost = true;
    CHECK(after_record(record) == kLost);
    record.session_alive = false;
    CHECK(after_record(record) == kRepeat);
  }
}
