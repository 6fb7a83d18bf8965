#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "console/partition_view.hpp"
#include "dashboard/access.hpp"
#include "dashboard/html.hpp"
#include "dashboard/samples.hpp"
#include "dead_letters/store/view.hpp"
#include "leases/store/view.hpp"
#include "ledger/history_view.hpp"
#include "ledger/key_view.hpp"
#include "ledger/process_conditions.hpp"
#include "ledger/register_view.hpp"
#include "outbox/store/view.hpp"

namespace pawl::dashboard {

/// Who looks, at what: the same on every page.
struct Frame {
  std::string cluster;
  std::string group;
  std::string path;          ///< of the page, for the navigation
  bool may_sign_in = false;  ///< by a token
  bool may_act = false;      ///< somebody may, in some way
  std::optional<Actor> actor;
  std::string done;           ///< what an action has brought
  std::string problem;        ///< why it was not done
  bool asked_by_get = false;  ///< so the same page can be loaded again
};

struct PartitionLine {
  ledger::RegisterRow row;
  Samples::Course course;
  std::string halt = {};  ///< engine::halt_text(); empty: it is not halted
  bool blocked = false;   ///< its process reports that a message waits for a lock

  [[nodiscard]] cli::Concern concern() const {
    return cli::concern_of(&row, course.end_before, blocked);
  }
};

struct PartitionsPage {
  std::string topic;  ///< the filters
  std::string state;
  bool known = true;  ///< the database has this consumer
  std::vector<PartitionLine> lines;
  std::size_t left_out = 0;
  cli::ConcernCounts counts;  ///< of all, whatever the filters
  std::size_t partitions = 0;
  Samples::Course total;
  std::vector<std::string> problems;  ///< of what was last seen in PostgreSQL and Kafka
  ledger::UnresolvedLetters letters;
  std::optional<std::int64_t> lag;  ///< of all, at the last look; nullopt: unknown of one
  std::vector<ledger::SharedCondition> conditions;  ///< what messages of live processes wait for
};

struct PartitionPage {
  PartitionLine line;
  std::string action;  ///< that is to be confirmed: resume, pause, skip; "": none
  std::string reason;  ///< as it was written before
  std::vector<ledger::HistoryRow> history;
  std::string history_problem;                      ///< why it could not be read
  std::vector<ledger::SharedCondition> conditions;  ///< of this partition
};

struct LettersPage {
  Fields filters;
  std::string problem;  ///< of a filter
  std::vector<ledger::DeadLetter> letters;
  std::optional<ledger::LetterPlace> next;  ///< there are more behind it
  bool first = true;
};

struct LetterPage {
  ledger::DeadLetter letter;  ///< its bytes only for who may see them
  std::string action;         ///< replay, discard
  std::string reason;
  bool needs_force = false;  ///< its key may be gone: the problem above says why
};

struct KeysPage {
  std::string key;
  std::vector<ledger::SearchedScope> scopes;
  std::vector<ledger::KeyRow> keys;
  std::vector<ledger::KeyRow> elsewhere;
  std::vector<ledger::HaltedAt> halts;
  std::vector<std::int64_t> letters;
  std::vector<ledger::LeaseRow> leases;
};

struct OutboxPage {
  ledger::OutboxStatus status;
  std::vector<ledger::SetApart> set_apart;
};

struct LeasesPage {
  std::string elsewhere;  ///< the command that looks where they are; empty: they are here
  ledger::LeaseCounts counts;
  std::string resolve;  ///< the command that tells the outcome of one, without its arguments
  std::vector<ledger::LeaseRow> leases;  ///< those that are unknown first
  std::vector<ledger::LeaseLoss> losses;
  std::size_t most = 0;
};

struct HistoryPage {
  std::vector<ledger::HistoryRow> rows;
  bool more = false;
};

}  // namespace pawl::dashboard
