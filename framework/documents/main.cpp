// Writes conf/reference.toml and generated pages of docs/reference into a folder, for
// scripts/documents.
//   pawl-documents FOLDER
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "config/documents.hpp"
#include "ops/reference_pages.hpp"

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file{path, std::ios::binary};
  file << text;
  if (!file.flush())
    throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: pawl-documents FOLDER\n";
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    const auto reference = folder / "docs" / "reference";
    const auto table = pawl::config::option_table();
    write(folder / "conf" / "reference.toml", pawl::config::reference_toml(table));
    for (const auto& page : pawl::config::reference_pages(table))
      write(reference / (page.name + ".md"), page.text);
    write(reference / "events.md", pawl::ops::events_page());
    write(reference / "metrics.md", pawl::ops::metrics_page());
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "pawl-documents: " << error.what() << '\n';
    return 1;
  }
}
