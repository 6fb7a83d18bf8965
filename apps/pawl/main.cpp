#include <pawl/pawl.hpp>

// The stock binary: everything a message does stands in the configuration (SQL and function
// handlers), nothing here.
int main(int argc, char** argv) {
  pawl::App app{"pawl"};
  return app.main(argc, argv);
}
