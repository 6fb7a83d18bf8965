#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leases/store/call_records.hpp"
#include "leases/store/key_leases.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// Leases as rows of pawl.leases.
class PostgresLeases final : public KeyLeases {
 public:
  /// `extending`: of the session that extends them for `time`.
  PostgresLeases(const std::string& schema, postgres::SessionSettings extending,
                 std::chrono::milliseconds time);

  [[nodiscard]] LeaseAnswer acquire(postgres::Session& session,
                                    LeaseRequest& request) const override;
  [[nodiscard]] std::optional<std::string> attempted_by(postgres::Session& session,
                                                        const Scope& scope,
                                                        const std::string& key) const override;
  [[nodiscard]] std::unique_ptr<LeaseExtender> make_extender(
      const std::atomic<bool>& unwanted) const override;
  void record(postgres::Request& request, const KeyLease& lease, const LeaseSubject& subject,
              const Response& response, const std::string& durable_commit) const override;
  [[nodiscard]] bool keeps_responses() const override { return true; }
  [[nodiscard]] bool recorded(const KeyLease& /*lease*/) const noexcept override { return true; }
  bool give_back(postgres::Session& session, const KeyLease& lease, GivenBack how, bool settled,
                 const Response& response) const override;
  void set_aside(const KeyLease& /*lease*/) const noexcept override {}
  void note_loss(postgres::Session& session, const KeyLease& lease, const LeaseSubject& subject,
                 std::uint32_t attempt, bool returned) const override;

 private:
  class Extender;

  const postgres::SessionSettings extending_;
  const std::chrono::milliseconds time_;
  const CallRecords records_;
  postgres::Statement acquire_;
  postgres::Statement attempted_by_;
  postgres::Statement extend_;
  postgres::Statement give_back_;
  postgres::Statement give_back_left_;
};

}  // namespace pawl::ledger
