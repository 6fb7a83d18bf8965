// The shared library is all of the static one: this file only gives its target a source.
