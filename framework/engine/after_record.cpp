#include "engine/after_record.hpp"

namespace pawl::engine {

AfterRecord after_record(const FailedRecord& record) {
  using postgres::FailureClass;
  if (!record.session_alive)
    return AfterRecord::kRepeat;
  if (record.lease_lost)
    return AfterRecord::kLost;
  switch (record.failure) {
    case FailureClass::kFenced:
    case FailureClass::kOutOfOrder:
    case FailureClass::kRowMissing:
      return AfterRecord::kUnplaced;
    case FailureClass::kTransactionEnded:
      return AfterRecord::kTaken;
    case FailureClass::kContention:
    case FailureClass::kResource:
      // Of its own a record passes soon; a handler that runs in it is given the usual attempts.
      return record.handler_begun && record.keeps_responses ? AfterRecord::kGivenBack
                                                            : AfterRecord::kRepeat;
    case FailureClass::kProgram:
      // What is not kept would have to be called for once more.
      return record.keeps_responses ? AfterRecord::kGivenBack : AfterRecord::kRepeat;
    case FailureClass::kSessionChanged:
      return AfterRecord::kRepeat;
    case FailureClass::kConnection:
    case FailureClass::kReadOnly:
    case FailureClass::kMessage:
      break;
  }
  return AfterRecord::kGivenBack;
}

}  // namespace pawl::engine
