#include "charge_handlers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <pqxx/pqxx>

#include "pawl/errors.hpp"

namespace pawl::test {
namespace {

struct Answer {
  int status = 0;
  std::string body;
};

/// A socket that closes itself.
class Socket {
 public:
  Socket() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() { ::close(socket_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return socket_; }

 private:
  int socket_;
};

/// One request on a connection of its own. Throws NotDone where it was not sent, and
/// std::runtime_error where no answer came until the call was to stop.
Answer request(const std::string& text, const std::stop_token& stop) {
  const std::string place = std::getenv("PAWL_TEST_API");
  Socket socket;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(place.substr(place.find(':') + 1))));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw NotDone("the API cannot be reached");
  if (::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the request was not sent whole");
  std::string received;
  std::size_t length = std::string::npos;
  std::size_t body = std::string::npos;
  while (body == std::string::npos || received.size() < body + length) {
    pollfd readable{socket.get(), POLLIN, 0};
    if (::poll(&readable, 1, 50) == 0) {
      // What came while the process stood still counts.
      if (stop.stop_requested() && ::poll(&readable, 1, 0) == 0)
        throw std::runtime_error("no answer came until the call was to stop");
      continue;
    }
    char buffer[16384];
    const auto got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got <= 0)
      throw std::runtime_error("the answer was cut off");
    received.append(buffer, static_cast<std::size_t>(got));
    const auto head = received.find("\r\n\r\n");
    if (head == std::string::npos)
      continue;
    body = head + 4;
    const auto field = received.find("Content-Length: ");
    length = std::stoul(received.substr(field + 16));
  }
  return {std::stoi(received.substr(9, 3)), received.substr(body)};
}

Response charge(const std::string& key, const std::stop_token& stop, const Message& message) {
  const std::string value(message.value());
  const auto answer =
      request("POST /charges HTTP/1.1\r\nHost: api\r\nIdempotency-Key: " + key +
                  "\r\nEvent-Id: " + std::string(message.header("event-id").value()) +
                  "\r\nContent-Length: " + std::to_string(value.size()) + "\r\n\r\n" + value,
              stop);
  if (answer.status == 200)
    return answer.body;
  if (answer.status >= 400 && answer.status < 500)
    throw PermanentError("the API refuses with " + std::to_string(answer.status));
  if (answer.status == 503)
    throw NotDone("the API has no time");
  throw std::runtime_error("the API answered " + std::to_string(answer.status));
}

Response charge_as_told(const Lease& lease, const Message& message) {
  return charge(lease.key(), lease.stop_token(), message);
}

Found look(const Lease& lease, const Message& /*message*/) {
  const auto answer =
      request("GET /charges/" + lease.key() + " HTTP/1.1\r\nHost: api\r\n\r\n", lease.stop_token());
  if (answer.status == 200)
    return Found::done(answer.body);
  return answer.status == 404 ? Found::not_done() : Found::unknown();
}

void enter(pqxx::dbtransaction& tx, const Message& message, const Response& /*response*/) {
  tx.exec(
      "INSERT INTO ledger SELECT $1, v->>'account', (v->>'amount')::bigint FROM (SELECT "
      "$2::jsonb) j (v)",
      pqxx::params{message.header("event-id").value(), message.value()});
  tx.exec(
      "UPDATE accounts a SET balance = balance + (v->>'amount')::bigint, entries = entries + 1"
      "  FROM (SELECT $1::jsonb) j (v) WHERE a.id = v->>'account'",
      pqxx::params{message.value()});
}

}  // namespace

void add_charge_handlers(Registry& registry) {
  registry.leased_handler("charge", {.call = charge_as_told, .reconcile = look});
  registry.leased_handler("charge_and_record",
                          {.call = charge_as_told, .record = enter, .reconcile = look});
  registry.leased_handler(
      "charge_record_fails",
      {.call = charge_as_told,
       .record = [](pqxx::dbtransaction& tx, const Message& message, const Response& response) {
         enter(tx, message, response);
         if (message.header("event-id").value().starts_with("poison"))
           tx.exec("SELECT 1 / (1 - count(*)) FROM refuses");
       }});
  registry.leased_handler(
      "charge_second_record_fails",
      {.call = charge_as_told,
       .record = [runs = std::make_shared<std::atomic<int>>(0)](
                     pqxx::dbtransaction& tx, const Message& message, const Response& response) {
         enter(tx, message, response);
         if (++*runs == 2)
           throw std::runtime_error("the second record fails");
       }});
  // Another database, which is not pawl's.
  registry.leased_handler("another_database", {.call = [](Lease&, const Message&) -> Response {
                            throw pqxx::sql_error("deadlock detected", "SELECT 1", "40P01");
                          }});
  registry.leased_handler("deaf", {.call = [](const Lease& lease, const Message& message) {
                            return charge(lease.key(), {}, message);
                          }});
  for (const auto* name : {"charge", "charge_and_record"}) {
    registry.on_duplicate(name, [](const Message& message, const Response& response) {
      std::printf("RESPONSE %s at %d/%lld\n", response ? response->c_str() : "none",
                  message.partition(), static_cast<long long>(message.offset()));
      std::fflush(stdout);
    });
  }
}

}  // namespace pawl::test
