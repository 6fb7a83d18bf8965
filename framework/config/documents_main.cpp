// Writes conf/reference.toml, and the tables in docs/configuration.md, from the table of options.
//   pawl-documents CHECKOUT
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "config/documents.hpp"

namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty())
    throw std::runtime_error(path.string() + " cannot be read");
  return text.str();
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file{path, std::ios::binary};
  file << text;
  if (!file.flush())
    throw std::runtime_error(path.string() + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: pawl-documents CHECKOUT\n";
    return 2;
  }
  try {
    const std::filesystem::path checkout = argv[1];
    const auto table = pawl::config::option_table();
    const auto page = checkout / "docs" / "configuration.md";
    write(page, pawl::config::with_option_tables(content(page), table));
    write(checkout / "conf" / "reference.toml", pawl::config::reference_toml(table));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "pawl-documents: " << error.what() << '\n';
    return 1;
  }
}
