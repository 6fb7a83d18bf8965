#include "scripted_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace pawl::test {
namespace wire {
namespace {

std::string number(std::uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    text += static_cast<char>(value >> static_cast<unsigned>(shift));
  return text;
}

std::string zero_terminated(std::string_view text) {
  return std::string(text) + '\0';
}

std::string report(char type, std::string_view severity, std::string_view sqlstate,
                   std::string_view text, std::string_view detail) {
  std::string body = 'S' + zero_terminated(severity) + 'V' + zero_terminated(severity) + 'C' +
                     zero_terminated(sqlstate) + 'M' + zero_terminated(text);
  if (!detail.empty())
    body += 'D' + zero_terminated(detail);
  return message(type, body + '\0');
}

}  // namespace

std::string message(char type, std::string_view body) {
  return type + number(static_cast<std::uint32_t>(body.size() + 4), 4) + std::string(body);
}

std::string row(const std::vector<std::string>& columns) {
  constexpr std::uint32_t kText = 25;
  const auto count = number(static_cast<std::uint32_t>(columns.size()), 2);
  std::string description = count;
  std::string data = count;
  for (const auto& column : columns) {
    description += zero_terminated("column") + number(0, 4) + number(0, 2) + number(kText, 4) +
                   number(0xffff, 2) + number(0xffffffff, 4) + number(0, 2);
    data += number(static_cast<std::uint32_t>(column.size()), 4) + column;
  }
  return message('T', description) + message('D', data);
}

std::string complete(std::string_view tag) {
  return message('C', zero_terminated(tag));
}

std::string error(std::string_view sqlstate, std::string_view text, std::string_view detail) {
  return report('E', "ERROR", sqlstate, text, detail);
}

std::string fatal(std::string_view sqlstate, std::string_view text) {
  return report('E', "FATAL", sqlstate, text, "");
}

std::string notice(std::string_view text) {
  return report('N', "NOTICE", "00000", text, "");
}

}  // namespace wire

namespace {

constexpr std::uint32_t kPid = 4711;

std::string parameter(std::string_view name, std::string_view value) {
  return wire::message('S', wire::zero_terminated(name) + wire::zero_terminated(value));
}

std::string ready(char status) {
  return wire::message('Z', std::string(1, status));
}

}  // namespace

ScriptedServer::ScriptedServer() : listener_(1), thread_([this] { serve(); }) {}

ScriptedServer::~ScriptedServer() {
  {
    const std::scoped_lock lock(mutex_);
    if (client_ >= 0)
      ::shutdown(client_, SHUT_RDWR);
  }
  // Ends an accept() that nobody connected to.
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

std::string ScriptedServer::url() const {
  return "host=127.0.0.1 user=test dbname=test sslmode=disable gssencmode=disable port=" +
         std::to_string(listener_.port());
}

void ScriptedServer::script(const std::string& sql, Reply reply) {
  const std::scoped_lock lock(mutex_);
  replies_[sql] = std::move(reply);
}

void ScriptedServer::cut_after(const std::string& sql, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  cut_at_ = sql;
  limit_ = bytes;
}

std::vector<std::string> ScriptedServer::executed() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(executed_, {});
}

bool ScriptedServer::has_executed(const std::string& sql) const {
  const std::scoped_lock lock(mutex_);
  return std::find(executed_.begin(), executed_.end(), sql) != executed_.end();
}

std::size_t ScriptedServer::sent_behind_cut() const {
  const std::scoped_lock lock(mutex_);
  return sent_;
}

void ScriptedServer::serve() {
  const int client = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0)
    return;
  // Each answer is a write of its own; without this they would wait for each other's receipt.
  const int on = 1;
  (void)::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  {
    const std::scoped_lock lock(mutex_);
    client_ = client;
  }
  testing::WireStream stream{false};
  bool opened = false;
  char buffer[4096];
  while (true) {
    const auto got = ::recv(client, buffer, sizeof buffer, 0);
    if (got <= 0)
      break;
    stream.append({buffer, static_cast<std::size_t>(got)});
    while (const auto one = stream.next()) {
      if (opened) {
        answer(client, *one);
      } else {
        open(client);
        stream.expect_types();
        opened = true;
      }
    }
  }
  const std::scoped_lock lock(mutex_);
  client_ = -1;
  ::close(client);
}

void ScriptedServer::open(int client) {
  send(client, wire::message('R', wire::number(0, 4)) + parameter("server_version", "17.0") +
                   parameter("server_encoding", "UTF8") + parameter("client_encoding", "UTF8") +
                   parameter("standard_conforming_strings", "on") +
                   wire::message('K', wire::number(kPid, 4) + wire::number(1, 4)) + ready('I'));
}

void ScriptedServer::answer(int client, const testing::WireMessage& message) {
  const auto statement = statements_.read(message);
  if (message.type == 'S') {
    skipping_ = false;
    {
      const std::scoped_lock lock(mutex_);
      executed_.emplace_back("Sync");
    }
    send(client, ready(status_));
  } else if (skipping_) {
    return;
  } else if (message.type == 'P') {
    send(client, wire::message('1', ""));
  } else if (message.type == 'B') {
    send(client, wire::message('2', ""));
  } else if (statement) {
    execute(client, statement->sql);
  }
}

Reply ScriptedServer::reply_to(const std::string& sql) const {
  const std::scoped_lock lock(mutex_);
  if (const auto found = replies_.find(sql); found != replies_.end())
    return found->second;
  // What a session asks when it begins.
  if (sql.find("pg_backend_pid()") != std::string::npos)
    return {wire::row({std::to_string(kPid), "2024-01-01", "off", "0"}) +
            wire::complete("SELECT 1")};
  if (sql.find("tcp_keepalives_idle") != std::string::npos)
    return {wire::row({"on", "", "", "", "", "", "", "", "", ""}) + wire::complete("SELECT 1")};
  const auto word = sql.substr(0, sql.find(' '));
  // A description that there are no rows goes before the end.
  return {wire::message('n', "") + wire::complete(word == "UPDATE" ? "UPDATE 1" : word)};
}

void ScriptedServer::execute(int client, const std::string& sql) {
  const auto reply = reply_to(sql);
  {
    const std::scoped_lock lock(mutex_);
    executed_.push_back(sql);
    if (sql == cut_at_)
      left_ = limit_;
  }
  send(client, reply.bytes);
  if (reply.hang_up)
    hang_up(client);
  if (reply.silent)
    silent_ = true;
  if (reply.bytes.starts_with('E')) {
    skipping_ = true;
    status_ = status_ == 'I' ? 'I' : 'E';
  } else if (sql.starts_with("BEGIN")) {
    status_ = 'T';
  } else if (sql == "COMMIT" || sql == "ROLLBACK") {
    status_ = 'I';
  }
}

void ScriptedServer::send(int client, std::string_view bytes) {
  if (silent_)
    return;
  bool cut = false;
  {
    const std::scoped_lock lock(mutex_);
    if (left_) {
      cut = bytes.size() > *left_;
      bytes = bytes.substr(0, *left_);
      *left_ -= bytes.size();
      sent_ += bytes.size();
    }
  }
  // Too little to fill a socket's buffer. A client that is gone is part of the test.
  (void)::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (cut)
    hang_up(client);
}

/// Only the writing half: what was sent arrives, whatever the client still sends.
void ScriptedServer::hang_up(int client) {
  ::shutdown(client, SHUT_WR);
  silent_ = true;
}

}  // namespace pawl::test
